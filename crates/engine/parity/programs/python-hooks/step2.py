"""The same with another value."""

import json
import os

import pulumi
from parity import Thing


def log(line):
    with open(os.environ["PARITY_WORLD"] + "/notes", "a") as notes:
        notes.write(line + "\n")


def tell(moment):
    def write(args):
        values = [json.dumps(dict(value or {}), sort_keys=True) for value in (args.new_inputs, args.old_inputs)]
        log(f"{moment} {args.name} {args.id or '-'} {values[0]} {values[1]}")

    return pulumi.ResourceHook(moment, write)


def fail(_args):
    raise Exception("nobody minds")


def again(args):
    log(f"{args.failed_operation} {args.name} {len(args.errors)}")
    return len(args.errors) < 2


ignored = pulumi.ResourceHook("ignored", fail, pulumi.ResourceHookOptions(ignore_errors=True))
hooks = pulumi.ResourceHookBinding(
    before_create=[tell("before-create"), ignored],
    after_create=[tell("after-create")],
    before_update=[tell("before-update")],
    after_update=[tell("after-update")],
)
Thing("watched", {"label": "two"}, pulumi.ResourceOptions(hooks=hooks))
Thing("flaky", {"label": "f"}, pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook("again", again)])))
