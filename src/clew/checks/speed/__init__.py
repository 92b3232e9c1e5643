"""Checks of speed and memory: what a profile shows to be wasted, with the expected gain."""
