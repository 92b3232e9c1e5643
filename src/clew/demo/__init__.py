"""An ordinary training script with two planted faults, for `clew demo`."""
