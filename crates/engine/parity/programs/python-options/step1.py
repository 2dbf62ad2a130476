"""Every option that changes what happens to a resource."""

import pulumi
from pulumi import Alias, CustomTimeouts, ResourceOptions
from parity import Blind, Plain, Provider, Thing

provider = Provider("special", {"prefix": "p"})
base = Thing("base", {"label": "b", "kind": "wood"}, ResourceOptions(provider=provider))
Thing("first", {"label": base.arn, "kind": "wood"}, ResourceOptions(delete_before_replace=True))
Thing("ignoring", {"label": "a", "tags": {"x": "1", "y": "1"}}, ResourceOptions(ignore_changes=["tags.x"]))
Blind("strict", {"label": "a"}, ResourceOptions(replace_on_changes=["label"]))
Thing("quiet", {"label": "a"}, ResourceOptions(additional_secret_outputs=["shout"]))
Thing("slow", {"label": "a"}, ResourceOptions(custom_timeouts=CustomTimeouts(create="2m", delete="3m")))
Thing("left", {"label": "a"}, ResourceOptions(retain_on_delete=True))
Plain("with-base", {"label": "a"}, ResourceOptions(deleted_with=base))
Thing("named", {"label": "a"})
Thing("safe", {"label": "a"}, ResourceOptions(protect=True))


def mark(args: pulumi.ResourceTransformArgs):
    props = {**args.props, "tags": {"marked": args.name}}
    return pulumi.ResourceTransformResult(props, args.opts)


Thing("marked", {"label": "a"}, ResourceOptions(transforms=[mark]))
