"""Two chains and a loner."""

from pulumi import ComponentResource, ResourceOptions
from parity import Thing

a1 = Thing("a1", {"label": "a"})
a2 = Thing("a2", {"label": a1.shout})
a3 = Thing("a3", {"label": a2.shout}, ResourceOptions(depends_on=[a2]))
group = ComponentResource("demo:index:Group", "group")
b1 = Thing("b1", {"label": "b"}, ResourceOptions(parent=group))
b2 = Thing("b2", {"label": b1.shout}, ResourceOptions(parent=group))
Thing("loner", {"label": "l"})
