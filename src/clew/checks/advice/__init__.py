"""Checks that draw conclusions from the other findings."""
