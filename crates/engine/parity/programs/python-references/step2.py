"""Builds on the outputs of the other stack."""

import pulumi
from parity import Thing

other = pulumi.StackReference(f"organization/{pulumi.get_project()}/base")
Thing("local", {"label": other.require_output("label"), "extra": other.get_output("list")})
Thing("quiet", {"label": other.get_output("token")})
pulumi.export("missing", other.get_output("nothing"))
pulumi.export("token", other.get_output("token"))
