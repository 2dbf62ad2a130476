"""One changes, one is replaced, one is replaced by deleting it first."""

import pulumi
from note import Note

first = Note("first", "good bye", "a")
second = Note("second", first.text.apply(lambda text: f"{text} again"), "d")
quiet = Note("quiet", pulumi.Output.secret("whisper"), "unique")
pulumi.export("lengths", [first.length, second.length])
