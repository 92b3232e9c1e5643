"""Checks of what an experiment found on a snapshot."""
