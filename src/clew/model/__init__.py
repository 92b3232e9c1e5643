"""Structure without training: walk a network, sum it up, name its sizes, draw its graph."""
