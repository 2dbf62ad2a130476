"""A chain and a neighbour; the test decides what fails."""

from pulumi import ResourceOptions
from parity import Thing

first = Thing("first", {"label": "f"})
second = Thing("second", {"label": first.shout})
third = Thing("third", {"label": second.shout}, ResourceOptions(depends_on=[second]))
