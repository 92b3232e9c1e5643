"""`clew.visit`: every op, module call or autograd node of a network, in forward order."""

from clew.labs.network.visitor import visit as visit
