"""What could not be replaced is no longer wanted."""

from parity import Thing

later = Thing("delete-later", {"kind": "stone", "label": "alone"})
