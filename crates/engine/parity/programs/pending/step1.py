"""Objects that will be replaced, one way and the other."""

from parity import Thing

first = Thing("delete-first", {"kind": "wood", "exclusive": True})
later = Thing("delete-later", {"kind": "wood", "label": first.arn})
