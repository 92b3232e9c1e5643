"""Checks of the optimizer, what it is given and how far it steps."""
