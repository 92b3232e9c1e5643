"""Experiments that train for a few steps.

Enter at the experiment's file. May import: as labs.experiments.

- `gradient_noise`: how much do the gradients of single batches differ? The gradient noise scale
- `growing_subsets`: would more samples help? The program's own model is trained on a quarter, a half and
  all of them
- `other_optimizers`: does another optimizer get much further, whatever the learning rate?
- `overfit_batch`: can it learn a few samples by heart?
- `range_test`: at which learning rates does the loss fall? The range test
- `rate_races`: the user's learning rate beside others: the same start, the same batches, other orders of
  them
- `redrawn_weights`: do the first weights carry signals through, and would newly drawn ones learn better?
- `regularisation_off`: does it learn only once dropout and weight decay are off?
- `toy_ladder`: which is the first of ever harder toy tasks that it can't learn?
- `wider_copy`: can a wider copy learn what this network can't?
"""
