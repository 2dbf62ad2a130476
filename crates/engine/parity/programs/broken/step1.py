"""Works."""

import pulumi
from parity import Thing

Thing("kept", {"label": "k"})
Thing("also", {"label": "a"})
pulumi.export("label", "fine")
