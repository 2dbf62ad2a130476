"""A hook that ends in a defect of its own."""

import pulumi
from parity import Thing


def complain(_args):
    raise Exception("too late")


def startle(args):
    return args.nothing.such()


watched = Thing("watched", {"label": "two"})
Thing(
    "startled",
    {"label": "l"},
    pulumi.ResourceOptions(depends_on=[watched], hooks=pulumi.ResourceHookBinding(after_create=[pulumi.ResourceHook("startle", startle)])),
)
