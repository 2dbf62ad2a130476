"""Some labels that policies have something to say about, and one that they correct."""

import pulumi
from parity import Thing

first = Thing("first", {"label": "a rather long label"})
Thing("second", {"label": "nobody's"}, pulumi.ResourceOptions(depends_on=[first]))
Thing("third", {"label": "dry"}, pulumi.ResourceOptions(depends_on=[first]))
