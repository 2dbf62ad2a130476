"""Components, configuration, secrets and outputs of all kinds."""

import pulumi
from parity import Blind, Provider, Thing


class Group(pulumi.ComponentResource):
    def __init__(self, name, size, opts=None):
        super().__init__("demo:index:Group", name, {"size": size}, opts)
        inner = Thing(f"{name}-inner", {"size": size, "label": "inner"}, pulumi.ResourceOptions(parent=self))
        self.sizes = inner.size
        self.register_outputs({"sizes": self.sizes, "inner": inner})


config = pulumi.Config()
first = Thing("first", {"label": config.require("greeting"), "size": 1, "tags": {"a": "x"}})
secret = Thing("secret", {"label": config.require_secret("password")})
Blind("blind", {"items": [first.id, secret.label, "x"], "extra": {"deep": [{"er": True, "none": None}]}})
south = Provider("south", {"prefix": "s"})
group = Group("group", 3, pulumi.ResourceOptions(providers={"parity": south}))
pulumi.export("shout", first.shout)
pulumi.export("sizes", group.sizes)
pulumi.export("secret", secret.shout)
pulumi.export("nested", {"list": [first.id, 4.5, True, None], "empty": {}})
