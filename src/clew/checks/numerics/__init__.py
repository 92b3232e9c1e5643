"""Checks of NaN and infinite values, and of 16-bit overflow and underflow."""
