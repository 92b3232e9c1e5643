"""What the loss does, told on its own only where no cause was found."""
