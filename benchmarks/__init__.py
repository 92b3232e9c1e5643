"""What Clew costs, measured as a ratio against the same work without it."""
