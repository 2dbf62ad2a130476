"""The newer version for all, and no other change."""

import base64

import pulumi
from parity import Provider, Thing


async def extends(name, version, parameter):
    return await pulumi.runtime.register_package(
        base_provider_name="parity",
        base_provider_version="1.0.0",
        base_provider_download_url="",
        package_name=name,
        package_version=version,
        base64_parameter=base64.b64encode(parameter.encode()).decode(),
        extension=True,
    )


def newer():
    return extends("crown", "2.0.0", "platinum")


class Extra(pulumi.CustomResource):
    shout: pulumi.Output[str]

    def __init__(self, type, name, label, package_ref, opts=None):
        super().__init__(type, name, {"label": label, "shout": None}, opts, package_ref=package_ref)


first = Extra("crown:index:Thing", "first", "uno", newer())
Thing("base", {"label": first.shout})
explicit = Provider("explicit", {"prefix": "p"}, pulumi.ResourceOptions(depends_on=[first]))
Extra("crown:index:Thing", "second", "due", newer(), pulumi.ResourceOptions(provider=explicit))
