"""Checks of the course of the loss, reported on their own only where no cause was found."""
