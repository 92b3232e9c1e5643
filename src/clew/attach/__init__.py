"""Getting in and out of a program: launcher, torch seams, and what they understand of it."""
