"""Checks of a model's outputs, and of the masks and noise that shape them."""
