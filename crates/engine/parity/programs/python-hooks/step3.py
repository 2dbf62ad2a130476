"""Complains after something was made."""

import pulumi
from parity import Thing


def complain(_args):
    raise Exception("too late")


def startle(args):
    return args.nothing.such()


watched = Thing("watched", {"label": "two"})
Thing(
    "loud",
    {"label": "l"},
    pulumi.ResourceOptions(depends_on=[watched], hooks=pulumi.ResourceHookBinding(after_create=[pulumi.ResourceHook("complain", complain)])),
)
