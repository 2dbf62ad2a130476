"""Too many things, each of which is well."""

import pulumi
from parity import Thing

first = Thing("first", {"label": "short"})
for name in ["second", "third", "fourth"]:
    Thing(name, {"label": "nobody's"}, pulumi.ResourceOptions(depends_on=[first]))
