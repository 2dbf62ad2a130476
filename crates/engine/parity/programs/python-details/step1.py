"""Options about plugins, order and shown differences, and what children have from their parents."""

import pulumi
from parity import Plain, Provider, Thing
from pulumi import ComponentResource, CustomTimeouts, ResourceOptions

Thing("hides", {"label": "h", "tags": {"a": "1"}, "extra": {"deep": "1"}}, ResourceOptions(hide_diffs=["label", "tags.a", 'extra["deep"]']))
Thing("shows", {"label": "s"})
Thing("second-version", {"label": "v"}, ResourceOptions(version="2.0.0"))
Thing("early-version", {"label": "v"}, ResourceOptions(version="3.0.0-alpha.1"))
Thing("from-somewhere", {"label": "u"}, ResourceOptions(plugin_download_url="https://example.com/provider1"))

mapped = Provider("mapped", {"prefix": "m"}, ResourceOptions(version="1.0.0", env_var_mappings={"PARITY_GIVEN": "PARITY_SEEN"}))
Thing("with-variable", {"label": "w"}, ResourceOptions(provider=mapped))

east = Provider("east", {"prefix": "e"}, ResourceOptions(version="1.0.0"))
first = Thing("parent1", {"label": "p"}, ResourceOptions(provider=east))
Thing("child1", {"label": "c"}, ResourceOptions(parent=first))
Thing("orphan1", {"label": "o"})
second = Thing("parent2", {"label": "p"}, ResourceOptions(protect=True, retain_on_delete=True))
Thing("child2", {"label": "c"}, ResourceOptions(parent=second))
Thing("child3", {"label": "c"}, ResourceOptions(parent=second, protect=False, retain_on_delete=False))

group = ComponentResource("demo:index:Group", "group")
member = Thing("member", {"label": "m"}, ResourceOptions(parent=group))
base = Thing("base", {"label": "f", "kind": "wood"}, ResourceOptions(custom_timeouts=CustomTimeouts(create="5m", update="90s")))
built = Plain("built", {"label": base.shout, "tags": {"a": base.arn, "b": member.label}}, ResourceOptions(depends_on=[group]))
Thing("pair", {"label": "p"}, ResourceOptions(replace_with=[base], depends_on=[built]))
Thing("triggered", {"label": "t"}, ResourceOptions(replacement_trigger="one", depends_on=[built]))
settings = Provider(
    "settings",
    {"text": "t", "number": 1.5, "flag": True, "list": ["a", "b"], "object": {"secretX": pulumi.Output.secret("x")}, "secretNumber": pulumi.Output.secret(16)},
    ResourceOptions(version="1.0.0"),
)
Thing("with-settings", {"label": "s"}, ResourceOptions(provider=settings))
