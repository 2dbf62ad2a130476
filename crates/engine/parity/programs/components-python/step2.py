"""One room more and another name."""

import pulumi

from parity import Provider, Thing


class Room(pulumi.ComponentResource):
    def __init__(self, name, label, sizes=(1,), opts=None):
        super().__init__("demo:index:Room", name, {"label": label}, opts)
        child = pulumi.ResourceOptions(parent=self)
        things = [Thing(f"{name}-{index}", {"label": label, "size": size}, child) for index, size in enumerate(sizes)]
        self.shout = pulumi.Output.all(*[thing.shout for thing in things]).apply(lambda all: "+".join(all))
        self.register_outputs({"shout": self.shout})


class House(pulumi.ComponentResource):
    def __init__(self, name, labels, opts=None):
        super().__init__("demo:index:House", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.rooms = [Room(f"{name}-room{index}", label, (index + 1, 7), child) for index, label in enumerate(labels)]
        self.register_outputs({"shouts": [room.shout for room in self.rooms]})


east = Provider("east", {"prefix": "e"})
house = House("house", ["kitchen", "attic", pulumi.Output.secret("cellar")])
other = House("other", [house.rooms[0].shout], pulumi.ResourceOptions(provider=east, depends_on=[house]))
Room("annex", "much later", opts=pulumi.ResourceOptions(providers={"parity": east}, aliases=[pulumi.Alias(name="shed")]))
pulumi.export("shouts", [room.shout for room in house.rooms])
pulumi.export("all", other.rooms[0].shout)
