"""Objects that others will change, remove and make unreadable."""

import pulumi
from parity import Plain, Thing

changed = Thing("changed", {"label": "c", "size": 1})
removed = Thing("removed", {"label": "r"})
user = Plain("user", {"label": removed.shout})
Thing("steady", {"label": "s", "tags": {"secret": pulumi.Output.secret("x")}})
pulumi.export("label", changed.label)
