"""One more thing, which is not kind."""

import pulumi
from parity import Thing

first = Thing("first", {"label": "short"})
second = Thing("second", {"label": "nobody's"}, pulumi.ResourceOptions(depends_on=[first]))
Thing("fourth", {"label": "forbidden words"}, pulumi.ResourceOptions(depends_on=[second]))
