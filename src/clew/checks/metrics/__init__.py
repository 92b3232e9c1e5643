"""Checks of the numbers that the user logs."""
