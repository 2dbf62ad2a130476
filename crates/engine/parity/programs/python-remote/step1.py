"""Components that live in a plugin: methods, references, and options that reach what is inside."""

import pulumi
from parity import Provider, Thing


class Remote(pulumi.ComponentResource):
    def __init__(self, type, name, args, outputs=(), opts=None):
        opts = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version="2.0.0"), opts)
        super().__init__(f"kit:index:{type}", name, {**args, **{output: None for output in outputs}}, opts, remote=True)


class Pair(Remote):
    joined: pulumi.Output[str]
    hidden: pulumi.Output[str]

    def __init__(self, name, label, opts=None):
        super().__init__("Pair", name, {"label": label}, ["joined", "hidden"], opts)

    def repeat(self, times):
        return pulumi.runtime.call("kit:index:Pair/repeat", {"__self__": self, "times": times}, self)


class Simple(Remote):
    label: pulumi.Output[str]

    def __init__(self, name, label, opts=None):
        super().__init__("Simple", name, {"label": label}, [], opts)


class Shelf(Remote):
    label: pulumi.Output[str]
    thing: pulumi.Output[Thing]

    def __init__(self, name, label, opts=None):
        super().__init__("Shelf", name, {"label": label}, ["thing"], opts)


class Copy(Remote):
    original: pulumi.Output[Thing]
    copied: pulumi.Output[Thing]

    def __init__(self, name, original, opts=None):
        super().__init__("Copy", name, {"original": original}, ["copied"], opts)


class Place(Remote):
    organization: pulumi.Output[str]
    project: pulumi.Output[str]
    stack: pulumi.Output[str]

    def __init__(self, name):
        super().__init__("Place", name, {}, ["organization", "project", "stack"])


class ThingModule(pulumi.runtime.ResourceModule):
    def version(self):
        return None

    def construct(self, name, typ, urn):
        return Thing(name, {}, pulumi.ResourceOptions(urn=urn))


pulumi.runtime.register_resource_module("parity", "index", ThingModule())

before = Thing("before", {"label": "b"})
south = Provider("south", {"prefix": "s"})
pair = Pair("pair", before.shout)
other = Pair("other", pulumi.Output.secret("quiet"), pulumi.ResourceOptions(providers=[south], aliases=[pulumi.Alias(name="earlier")]))
Thing("after", {"label": pair.joined, "extra": {"text": pair.repeat(before.size)["text"]}}, pulumi.ResourceOptions(depends_on=[other]))
shelf = Shelf("shelf", "foo")
copy = Copy("copy", shelf.thing)
Thing("by-label", {"label": shelf.label})
Thing("by-reference", {"label": shelf.thing.apply(lambda thing: thing.label)})
Thing("copied", {"label": copy.copied.apply(lambda thing: thing.label)})
Simple("ignoring", "one", pulumi.ResourceOptions(ignore_changes=["label"]))
Simple("heeding", "one")
Simple("triggered", "t", pulumi.ResourceOptions(replacement_trigger="first"))
place = Place("place")
pulumi.export("where", [place.organization, place.project, place.stack])
pulumi.export("joined", pair.joined)
pulumi.export("hidden", other.hidden)
pulumi.export("plain", pulumi.runtime.call_single("kit:index:Pair/plain", {"__self__": pair}, pair))
