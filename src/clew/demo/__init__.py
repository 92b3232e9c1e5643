"""An ordinary training script with two planted faults, for `clew demo`.

Enter at `digits.py`. May import: nothing of Clew's: it plays the user's script.

- `digits`: handwritten digits, learned by a small network. It trains, but badly: two faults are planted
"""
