"""Checks of training and evaluation mode."""
