"""What the checks of learning rates read: trials of other rates, sizes of updates, losses that went away.

Each reading has its own thresholds, which the check that uses it holds in a field.
May import: records, checks.

- `departed_loss`: whether a loss has left, stands where it began, or was blown up by the first steps
- `large_updates`: how much one step changes the weights, and whether steep gradients are to blame for it
- `rate_leap`: a learning rate far above all before it, from which the loss never came back
- `rate_trials`: reading the trials of learning rates: what the user's gained, and what the best other one
  did
- `scale_free_optimizers`: optimizers whose steps do not depend on how large the gradient is
"""
