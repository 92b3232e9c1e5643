"""Checks of how layers follow one another."""
