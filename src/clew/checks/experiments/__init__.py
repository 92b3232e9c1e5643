"""Checks of the results of experiments on a snapshot."""
