"""Asks for the same name twice, one after the other."""

from pulumi import ResourceOptions
from parity import Thing

kept = Thing("kept", {"label": "changed"})
Thing("kept", {"label": "twice"}, ResourceOptions(depends_on=[kept]))
