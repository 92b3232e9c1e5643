"""Checks: pure functions from what was recorded to findings. No torch here."""
