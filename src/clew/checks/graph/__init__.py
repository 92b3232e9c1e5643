"""Checks of the autograd graph and of what a model consists of."""
