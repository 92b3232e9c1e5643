"""Checks of what goes into the model."""
