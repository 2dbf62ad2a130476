"""One cannot be made."""

from pulumi import ResourceOptions
from note import Note

first = Note("first", "good bye", "a")
Note("broken", "unwritable", "e", ResourceOptions(depends_on=[first]))
