"""Says a lot, on every channel."""

import sys

import pulumi
from parity import Thing

thing = Thing("kept", {"label": "k"})
pulumi.log.info("for the stack")
pulumi.log.warn("for the thing", thing)
pulumi.log.debug("for nobody")
print("to standard output")
print("to standard error", file=sys.stderr)
pulumi.export("label", "fine")
