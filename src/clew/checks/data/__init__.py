"""Checks of the data that goes into the model."""
