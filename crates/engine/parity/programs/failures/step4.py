"""Everything changes, and a new neighbour does not depend on anything."""

from pulumi import ResourceOptions
from parity import Thing

first = Thing("first", {"label": "g"})
second = Thing("second", {"label": first.shout})
third = Thing("third", {"label": second.shout}, ResourceOptions(depends_on=[second]))
Thing("neighbour", {"label": "n"})
