"""Checks of what layers put out."""
