"""What the other findings add up to."""
