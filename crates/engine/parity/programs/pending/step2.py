"""Objects that will be replaced, one way and the other."""

from parity import Thing

first = Thing("delete-first", {"kind": "stone", "exclusive": True})
later = Thing("delete-later", {"kind": "stone", "label": first.arn})
