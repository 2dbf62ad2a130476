"""Packages that a plugin becomes by parameters: resources, functions, two at once, and a provider of its own."""

import base64

import pulumi


async def becomes(name, parameter):
    return await pulumi.runtime.register_package(
        base_provider_name="parity",
        base_provider_version="1.0.0",
        base_provider_download_url="",
        package_name=name,
        package_version="2.5.0",
        base64_parameter=base64.b64encode(parameter.encode()).decode(),
    )


def hello():
    return becomes("hello", "HelloWorld")


def goodbye():
    return becomes("goodbye", "GoodbyeWorld")


class Greeting(pulumi.CustomResource):
    shout: pulumi.Output[str]

    def __init__(self, type, name, label, package_ref, opts=None):
        super().__init__(type, name, {"label": label, "shout": None}, opts, package_ref=package_ref)


class GoodbyeProvider(pulumi.ProviderResource):
    def __init__(self, name, prefix):
        super().__init__("goodbye", name, {"prefix": prefix}, package_ref=goodbye())


first = Greeting("hello:index:Thing", "first", "one", hello())
Greeting("goodbye:index:Thing", "second", first.shout, goodbye())
explicit = GoodbyeProvider("explicit", "World")
Greeting("goodbye:index:Thing", "third", "three", goodbye(), pulumi.ResourceOptions(provider=explicit))
pulumi.export(
    "texts",
    [
        pulumi.runtime.invoke_output("hello:index:parameter", {}, package_ref=hello()),
        pulumi.runtime.invoke_output("goodbye:index:parameter", {}, pulumi.InvokeOutputOptions(provider=explicit), package_ref=goodbye()),
    ],
)
