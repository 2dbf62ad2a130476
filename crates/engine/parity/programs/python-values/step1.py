"""Values of every shape and names of every kind, through a provider and back."""

import pulumi
from parity import Thing


class Named(pulumi.CustomResource):
    """Types of other modules, and names that are words of a language."""

    def __init__(self, type, name, args, opts=None):
        opts = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version="1.0.0"), opts)
        super().__init__(type, name, {"size": None, "label": None, **args}, opts)


config = pulumi.Config()
keys = {"my key": "one", "my.key": "two", "my-key": "three", "my_key": "four", "MY_KEY": "five", "myKey": "six"}
odd = {
    "__type": True,
    "__internal": False,
    "__version": False,
    "": True,
    "Some ${common} \"characters\" 'to escape': \\ \t \u001b \u0007 \U000e0021": False,
    "%percent ...dots {open }close *star ?mark ,comma &&and ||or !not =>arrow ==equal :colon /slash [0] a.b[*]": True,
}
primitives = Thing(
    "primitives",
    {
        "label": "Goodbye",
        "extra": {"boolean": False, "float": 2.17, "integer": -12, "large": 9007199254740991, "tiny": 1e-9, "numbers": [0, 1, -0.5], "flags": {"t": True, "f": False}},
    },
)
Thing("empties", {"label": "", "extra": {"list": [], "map": {}, "text": "", "zero": 0, "no": False, "lists": [[], [[]]]}})
Thing("optional", {"extra": {"given": "x", "nothing": None, "items": [None, "a", None]}})
Thing("keys", {"label": "k", "tags": keys, "extra": {"inner": {"deeper": keys}}})
Thing("odd-keys", {"label": "k", "extra": odd})
Thing("nested", {"label": "n", "extra": {"matrix": [[1, 2], [3]], "maps": [{"a": {"b": [{"c": ["d"]}]}}], "mixed": [1, "1", True, None]}})
Thing("large", {"label": "hello world" * 20000})
Thing("union", {"label": "u", "extra": [{"kind": "one", "text": "a"}, {"kind": "two", "number": 2}, "three", 4]})
Thing("constant", {"label": "c", "kind": "only-this-one"})
Thing("enum", {"label": "one", "extra": {"level": 1, "name": "two", "outside": "three"}})
Thing("any", {"label": "a", "extra": pulumi.Output.from_input({"at": ["all", {"of": config.get_object("object")}]})})
Thing("reference", {"label": "r", "extra": {"id": primitives.id, "urn": primitives.urn, "same": primitives}})
Thing("from-reference", {"label": primitives.id, "extra": {"size": primitives.size, "text": pulumi.Output.format("{0}", primitives.size)}})
Thing("unknown-inside", {"label": "u", "extra": {"known": "k", "later": primitives.arn, "list": [primitives.arn, "x"], "map": {"a": primitives.serial}}})
Named("parity:mod:Thing", "in-module", {"label": "m"})
Named("parity:mod/nested:Thing", "in-nested-module", {"label": "m"})
Named("parity:index-mine:Thing", "kebab-name", {"label": "k", "extra": {"kebab-key": "a", "snake_key": "b", "camelKey": "c", "PascalKey": "d"}})
Named("parity:index:some_snake_Thing", "snake_name", {"label": "s"})
Named("parity:lambda:Thing", "class", {"label": "w", "extra": {"builtins": "a", "property": "b", "class": "c", "self": "d", "import": "e"}})
Named("parity:index:Lambda", "lambda", {"label": config.get("names") or "names"})
for name in ["a name with spaces", "ünï/cödé", "slash/and:colon", "UPPER.lower_0-9"]:
    Thing(name, {"label": "n"})
for number in range(8):
    Thing(f"parallel-{number}", {"label": f"{number}"})
pulumi.export("all", {"label": primitives.label, "id": primitives.id})
pulumi.export("size", primitives.size)
