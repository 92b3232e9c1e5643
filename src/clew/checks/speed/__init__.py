"""Checks of speed and memory: what a profile shows to be wasted, with the gain that is to be expected."""
