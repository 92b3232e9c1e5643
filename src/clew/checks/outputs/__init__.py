"""Checks of what a model puts out, and of what shapes it on the way."""
