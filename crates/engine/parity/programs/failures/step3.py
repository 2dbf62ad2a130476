"""Something cannot even be asked for, after something that can."""

from pulumi import ResourceOptions
from parity import Thing

first = Thing("first", {"label": "g"})
Thing("refused", {"size": -1}, ResourceOptions(depends_on=[first]))
