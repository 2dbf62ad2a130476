"""Functions and methods of providers: single values, left out arguments, settings, dependencies."""

import pulumi
from parity import Provider, Thing
from pulumi.runtime import call, call_single, invoke, invoke_output, invoke_output_single


def single(name, text):
    return invoke_output_single(f"parity:index:{name}", {"text": text})


def asked(name, args, opts=None):
    return invoke_output(f"parity:index:{name}", args, opts)


thing = Thing("thing", {"label": "t"})
special = Provider("special", {"prefix": "s"}, pulumi.ResourceOptions(version="1.0.0"))
served = Thing("served", {"label": "s"}, pulumi.ResourceOptions(provider=special))


class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("demo:index:Box", name, {}, opts)
        Thing(f"{name}-inner", {"label": "inner"}, pulumi.ResourceOptions(parent=self))
        self.said = asked("settings", {"text": "from the box"}, pulumi.InvokeOptions(parent=self))
        self.register_outputs({"said": self.said})


box = Box("box", pulumi.ResourceOptions(providers=[special]))
pulumi.export("nothing", invoke("parity:index:lookup", {"id": "nobody"}).value)
pulumi.export("found", asked("lookup", {"id": thing.id}))
pulumi.export("special", invoke("parity:index:lookup", {"id": "nobody"}, pulumi.InvokeOptions(provider=special)).value)
pulumi.export("hiddenLabel", asked("lookup", {"id": pulumi.Output.secret("nobody")})["label"])
pulumi.export("later", asked("lookup", {"id": "thing-1"}, pulumi.InvokeOutputOptions(depends_on=[thing]))["found"])
pulumi.export("one", single("single", "hello"))
pulumi.export("list", single("singleList", thing.label))
pulumi.export("map", single("singleMap", "m"))
pulumi.export("hidden", single("singleSecret", "quiet"))
pulumi.export("both", asked("join", {"first": "hello", "second": "world"})["result"])
pulumi.export("required", asked("join", {"first": "hello"})["result"])
pulumi.export("withDefault", Thing("default", {"label": asked("join", {"first": "computed"})["result"]}).shout)
pulumi.export("echoed", asked("echo", {"class": "c", "import": ["i"], "a key": {"deep": thing.id}}))
pulumi.export("settings", [asked("settings", {}), asked("settings", {"text": "x"}, pulumi.InvokeOutputOptions(provider=special))])
pulumi.export("boxed", box.said)
pulumi.export("afterBox", asked("lookup", {"id": "box-inner-1"}, pulumi.InvokeOutputOptions(depends_on=[box]))["found"])
pulumi.export("method", call("parity:index:Thing/say", {"__self__": thing, "text": "hi"}, thing))
pulumi.export("special1", call_single("parity:index:Thing/say", {"__self__": served, "text": "there"}, served))
pulumi.export("ofProvider", call_single("pulumi:providers:parity/identity", {"__self__": special, "text": "me"}, special))

# As many resources as a function says, made from what it returns.
names = asked("names", {"names": ["alpha", "bravo"]})["results"]
names.apply(lambda results: [Thing(f"route-{index}", {"label": result}) for index, result in enumerate(results)])
pulumi.export("joined", names.apply(lambda results: ",".join(results)))
