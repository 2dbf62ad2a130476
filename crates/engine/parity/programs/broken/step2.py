"""Ends in the middle: what was not reached must stay."""

import pulumi
from parity import Thing

Thing("kept", {"label": "changed"})
raise Exception("something went wrong")
