"""Everything changes."""

from pulumi import ResourceOptions
from parity import Thing

first = Thing("first", {"label": "g"})
second = Thing("second", {"label": first.shout})
third = Thing("third", {"label": second.shout}, ResourceOptions(depends_on=[second]))
