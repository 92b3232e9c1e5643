"""Checks of the autograd graph and of the parts of a model."""
