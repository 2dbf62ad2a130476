"""Objects that were there before, files, and what can be said of them."""

import pulumi

from parity import Plain, Thing

seen = Thing("seen", {}, pulumi.ResourceOptions(id="foreign-1"))
taken = Thing("taken", {"label": "far", "size": 1}, pulumi.ResourceOptions(import_="foreign-2"))
Plain("user", {"label": seen.shout, "extra": taken.arn})
Thing(
    "files",
    {
        "extra": {
            "text": pulumi.StringAsset("in line"),
            "file": pulumi.FileAsset("step1.py"),
            "folder": pulumi.AssetArchive({"a": pulumi.StringAsset("x"), "b": pulumi.AssetArchive({})}),
        }
    },
)
