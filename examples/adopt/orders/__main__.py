"""The orders service. It stands beside the network, whose stack has the same name."""

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult


class ServiceProvider(ResourceProvider):
    """Stands for a cloud: what it makes is only recorded."""

    def create(self, props):
        return CreateResult("orders", props)

    def diff(self, _id, olds, news):
        return DiffResult(changes=any(olds.get(key) != news[key] for key in ("size", "database", "subnet")))

    def update(self, _id, _olds, news):
        return UpdateResult(news)


class Service(Resource):
    database: pulumi.Output[str]

    def __init__(self, name, props):
        super().__init__(ServiceProvider(), name, props)


config = pulumi.Config()
network = pulumi.StackReference(f"{pulumi.get_organization()}/network/{pulumi.get_stack()}")

password = config.require_secret("dbPassword")
service = Service(
    "orders",
    {
        "size": config.require_int("size"),
        "database": pulumi.Output.concat("postgres://orders:", password, "@db/orders"),
        "subnet": network.require_output("subnetIds").apply(lambda ids: ids[0]),
    },
)

pulumi.export("size", config.require_int("size"))
pulumi.export("database", service.database)
