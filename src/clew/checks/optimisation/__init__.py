"""Checks of the optimizer, the gradients it gets and the size of its steps."""
