"""Makes what `plan.json` says, which the test draws at random."""

import json
import re

import pulumi
from parity import Blind, Plain, Provider, Thing

with open("plan.json", encoding="utf-8") as file:
    plan = json.load(file)
made = {}
kinds = {"Thing": Thing, "Plain": Plain, "Blind": Blind}
OUTPUTS = {"id": "id", "label": "label", "shout": "shout", "arn": "arn", "size": "size"}


def value(given):
    """Values as they are; `{$: "secret", of}` and `{$: "output", of, name}` are what they say."""
    if isinstance(given, list):
        return [value(item) for item in given]
    if not isinstance(given, dict):
        return given
    kind = given.get("$")
    if kind == "secret":
        return pulumi.Output.secret(value(given["of"]))
    if kind == "output":
        return getattr(made[given["of"]], OUTPUTS[given["name"]])
    if kind == "text":
        return pulumi.StringAsset(given["of"])
    if kind == "files":
        return pulumi.AssetArchive({"a.txt": pulumi.StringAsset(given["of"])})
    return {key: value(inner) for key, inner in given.items()}


def options(given, **more):
    """Options that name resources name them by the names of the plan."""
    read = {}
    for key, option in given.items():
        name = re.sub("[A-Z]", lambda letter: "_" + letter.group(0).lower(), key)
        if key in ("parent", "provider", "deletedWith"):
            option = made[option]
        elif key in ("dependsOn", "replaceWith"):
            option = [made[one] for one in option]
        elif key == "aliases":
            option = [pulumi.Alias(name=one) for one in option]
        elif key == "customTimeouts":
            option = pulumi.CustomTimeouts(**option)
        elif key == "replacementTrigger":
            option = value(option)
        read[name] = option
    return pulumi.ResourceOptions(**{**more, **read})


for one in plan["resources"]:
    name, kind = one["name"], one["kind"]
    if kind == "Provider":
        made[name] = Provider(name, value(one["inputs"]), options(one["options"], version="1.0.0"))
    elif kind == "Group":
        made[name] = pulumi.ComponentResource("demo:index:Group", name, {}, options(one["options"]))
    else:
        made[name] = kinds[kind](name, value(one["inputs"]), options(one["options"]))
for name, given in plan["outputs"].items():
    pulumi.export(name, value(given))
