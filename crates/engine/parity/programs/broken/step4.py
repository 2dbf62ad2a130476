"""Lacks its configuration."""

import pulumi

pulumi.Config().require("missing")
