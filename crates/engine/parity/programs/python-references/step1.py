"""What another stack will look at."""

import pulumi
from parity import Thing

thing = Thing("thing", {"label": "shared"})
pulumi.export("label", thing.shout)
pulumi.export("token", pulumi.Output.secret("t-1"))
pulumi.export("list", [1, 2, {"three": thing.id}])
