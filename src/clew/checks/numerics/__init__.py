"""Checks of numbers that are no numbers."""
