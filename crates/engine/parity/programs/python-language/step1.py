"""What a program computes by itself and gets to know of its stack, below the folder of the project."""

import base64
import hashlib
import json
import os

import pulumi

config = pulumi.Config()
texts = config.require_object("texts")
tags = config.require_object("tags")
anything = config.require_object("anything")
hidden_tags = pulumi.Output.secret(tags)


def attempt(make, otherwise):
    try:
        found = make()
        return otherwise if found is None else found
    except (KeyError, TypeError):
        return otherwise


pulumi.require_pulumi_version(">=3.200.0")
stash = pulumi.Stash("stash", input={"key": ["value", "s"], "": False})

with open("../notes.txt", encoding="utf-8") as notes:
    text = notes.read()
encoded = base64.b64encode(text.encode()).decode()
pulumi.export("stashed", {"input": stash.input, "output": stash.output})
pulumi.export("where", {"cwd": os.getcwd(), "root": pulumi.get_root_directory()})
pulumi.export("who", [pulumi.get_organization(), pulumi.get_project(), pulumi.get_stack()])
pulumi.export("file", text)
pulumi.export("base64", encoded)
pulumi.export("plain", base64.b64decode(encoded).decode())
pulumi.export("sha1", hashlib.sha1(text.encode()).hexdigest())
pulumi.export("json", json.dumps({"key": ["a", 1, None, True], "": {}}))
pulumi.export("laterJson", pulumi.Output.json_dumps({"tags": hidden_tags, "file": text}))
pulumi.export("can", [attempt(lambda: anything["a"]["b"], "fallback"), attempt(lambda: anything["x"]["y"], "fallback")])
pulumi.export("hiddenTry", hidden_tags.apply(lambda map: map.get("none", "fallback")))
pulumi.export("list", [texts[1], texts[-1], "|".join(texts), len(texts), "a-b-c".split("-")])
pulumi.export("entries", [{"key": key, "value": value} for key, value in tags.items()])
pulumi.export("lookup", [tags.get("first", "default"), tags.get("missing", "default")])
pulumi.export("text", ["prefix-" + texts[0], len(texts[0]), texts[0][::-1]])
pulumi.export("numbers", [max(1.5, 2.25), min(1.5, 2.25), max(*[1, 2, 3])])
pulumi.export(
    "primitive",
    [
        config.require_float("number") + 1.25,
        config.get_float("absent") or 41.5,
        config.require("word") + " World",
        not config.require_bool("flag"),
        config.get_bool("absent") or False,
    ],
)
pulumi.export("optional", [item or "nothing" for item in config.get_object("optional") or []])
pulumi.export(
    "mapped",
    {
        "list": [f"{index}:{word}" for index, word in enumerate(word for word in texts if word != "beta")],
        "map": {key: value for key, value in tags.items() if key != "second"},
    },
)
pulumi.export("index", [hidden_tags["first"], pulumi.Output.secret([1])[0], pulumi.Output.secret({"inner": {"property": "deep"}})["inner"]["property"]])
for name in ["class", "import", "self", "if", "mod"]:
    pulumi.export(name, "a word of some language")
pulumi.export("object", {"object": "a word of some language"})
