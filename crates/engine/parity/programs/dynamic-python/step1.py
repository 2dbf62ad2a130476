"""A provider that is written in the program itself: objects are files in a folder."""

import pulumi
from note import Note

first = Note("first", "hello", "a")
second = Note("second", first.text.apply(lambda text: f"{text} again"), "b")
quiet = Note("quiet", pulumi.Output.secret("whisper"), "c")
pulumi.export("lengths", [first.length, second.length])
