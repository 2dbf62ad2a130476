"""What the options make of changes."""

import pulumi
from pulumi import Alias, CustomTimeouts, ResourceOptions
from parity import Blind, Plain, Provider, Thing

provider = Provider("special", {"prefix": "p"})
base = Thing("base", {"label": "b", "kind": "stone"}, ResourceOptions(provider=provider))
Thing("first", {"label": base.arn, "kind": "stone"}, ResourceOptions(delete_before_replace=True))
Thing("ignoring", {"label": "a", "tags": {"x": "2", "y": "2"}}, ResourceOptions(ignore_changes=["tags.x"]))
Blind("strict", {"label": "b"}, ResourceOptions(replace_on_changes=["label"]))
Thing("quiet", {"label": "b"}, ResourceOptions(additional_secret_outputs=["shout", "arn"]))
Thing("slow", {"label": "b"}, ResourceOptions(custom_timeouts=CustomTimeouts(update="4m")))
Thing("renamed", {"label": "a"}, ResourceOptions(aliases=[Alias(name="named")]))
Thing("safe", {"label": "a"})


def mark(args: pulumi.ResourceTransformArgs):
    props = {**args.props, "tags": {"marked": args.type_}}
    return pulumi.ResourceTransformResult(props, args.opts)


Thing("marked", {"label": "a"}, ResourceOptions(transforms=[mark]))
