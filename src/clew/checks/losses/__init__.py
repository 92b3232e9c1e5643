"""Checks of what goes into the loss."""
