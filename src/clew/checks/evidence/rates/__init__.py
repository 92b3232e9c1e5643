"""Readings of learning rates, updates and losses that the checks of rates share.

Enter at `large_updates.py`. May import: records, checks.

- `departed_loss`: whether a loss has left, stands where it began, or was blown up by the first steps
- `large_updates`: how much one step changes the weights, and whether steep gradients are to blame for it
- `rate_leap`: A learning rate far above all before it, from which the loss never came back
- `rate_trials`: reads the experiments with learning rates: what the user's rate gained, and what the best
  other rate gained
- `scale_free_optimizers`: optimizers whose steps do not depend on how large the gradient is: Adam and its
  relatives
"""
