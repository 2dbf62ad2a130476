"""The adopted object is now changed like any other."""

import pulumi

from parity import Plain, Thing

seen = Thing("seen", {}, pulumi.ResourceOptions(id="foreign-1"))
taken = Thing("taken", {"label": "near", "size": 2})
Plain("user", {"label": seen.shout, "extra": taken.arn})
Thing(
    "files",
    {
        "extra": {
            "text": pulumi.StringAsset("in another line"),
            "file": pulumi.FileAsset("step2.py"),
            "folder": pulumi.AssetArchive({"a": pulumi.StringAsset("x"), "b": pulumi.AssetArchive({})}),
        }
    },
)
