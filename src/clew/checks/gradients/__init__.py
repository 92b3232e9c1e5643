"""Checks of gradients along depth and over time."""
