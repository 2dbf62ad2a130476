"""The resources of the test provider, as Python programs use them."""

import pulumi

_OUTPUTS = {"shout": None, "serial": None, "arn": None}


class _Base(pulumi.CustomResource):
    size: pulumi.Output[int]
    label: pulumi.Output[str]
    shout: pulumi.Output[str]
    serial: pulumi.Output[int]
    arn: pulumi.Output[str]

    def __init__(self, kind, name, args=None, opts=None):
        opts = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version="1.0.0"), opts)
        props = {"size": None, "label": None, **(args or {}), **_OUTPUTS}
        super().__init__(f"parity:index:{kind}", name, props, opts)


class Thing(_Base):
    """Says exactly what differs."""

    def __init__(self, name, args=None, opts=None):
        super().__init__("Thing", name, args, opts)


class Plain(_Base):
    """Says which properties differ."""

    def __init__(self, name, args=None, opts=None):
        super().__init__("Plain", name, args, opts)


class Blind(_Base):
    """Cannot say whether anything differs."""

    def __init__(self, name, args=None, opts=None):
        super().__init__("Blind", name, args, opts)


class Provider(pulumi.ProviderResource):
    def __init__(self, name, args=None, opts=None):
        super().__init__("parity", name, args or {}, opts)
