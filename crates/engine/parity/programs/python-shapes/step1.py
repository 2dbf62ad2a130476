"""Resources in numbers that come from configuration, lists and outputs, and components that want of each other."""

import asyncio

import pulumi
from parity import Thing

config = pulumi.Config()
words = config.require_object("words")
tags = config.require_object("tags")
count = config.require_int("count")


class Room(pulumi.ComponentResource):
    def __init__(self, name, label, extra=None, opts=None):
        super().__init__("demo:index:Room", name, {"label": label, "extra": extra}, opts)
        thing = Thing(f"{name}-0", {"label": label, "extra": extra}, pulumi.ResourceOptions(parent=self))
        self.shout = thing.shout
        self.register_outputs({"shout": self.shout})


# What two components want of each other, neither waiting for all of the other.
later = asyncio.get_event_loop().create_future()
first = Room("first", pulumi.Output.from_input(later).apply(lambda value: value))
second = Room("second", "s")
later.set_result(second.shout)
Room("third", first.shout)

# Configuration of every type into components, in the clear and secret.
Room("configured", config.require("word"), {"count": count, "flag": config.require_bool("flag"), "words": words, "tags": tags})
Room("hidden", config.require_secret("word"), {"words": config.require_secret_object("words"), "tags": config.require_secret_object("tags")})
# Texts that are numbers and numbers that are texts.
Room("converted", str(True), {"boolean": "true" == "true", "float": float("3.14"), "integer": int("42"), "items": [int(item) for item in ["-1", "0"]]})

for number in range(count):
    Thing(f"number-{number}", {"label": f"n{number}"})
listed = [Thing(f"word-{index}", {"label": f"{index}:{word}"}) for index, word in enumerate(words)]
mapped = {key: Thing(f"tag-{key}", {"label": f"{key}={value}"}) for key, value in tags.items()}
perhaps = Thing("perhaps", {"label": "yes"}) if config.require_bool("flag") else None
Thing("after-perhaps", {"label": pulumi.Output.concat(perhaps.label, "+") if perhaps else "no"})
Thing("from-list", {"label": listed[1].shout, "items": [thing.label for thing in listed]})
Thing("from-map", {"label": mapped["first"].shout, "tags": {key: thing.label for key, thing in mapped.items()}})

names = Thing("source", {"label": "s"}).shout.apply(lambda shout: [{"key": "a", "value": shout}, {"key": "b", "value": "2"}])
Thing("splat", {"label": "x", "items": names.apply(lambda all: [one["value"] for one in all])})
Thing("rebuilt", {"label": "x", "extra": names.apply(lambda all: {one["key"]: one["value"] for one in all})})
names.apply(lambda all: [Thing(f"detail-{one['key']}", {"label": one["value"]}) for one in all])


class Scope(pulumi.ComponentResource):
    def __init__(self, name, prefix):
        super().__init__("demo:index:Scope", name, {"prefix": prefix})
        for number in range(2):
            Thing(f"{name}-item-{number}", {"label": f"{prefix}-{number}"}, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})


Scope("scope", "p")
pulumi.export("greetings", [f"Hello, {word}!" for word in words])
pulumi.export("shout", second.shout)
