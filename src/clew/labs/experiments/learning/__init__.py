"""Experiments that train for a few steps.

Enter at the experiment's file. May import: as labs.experiments.

- `gradient_noise`: how much do the gradients of single batches differ? Measures the gradient noise scale
- `growing_subsets`: would more samples help? Trains the user's model on a quarter, a half and all of the
  samples
- `other_optimizers`: does another optimizer get much further at any learning rate?
- `overfit_batch`: can the model memorise a few samples?
- `range_test`: at which learning rates does the loss fall? The learning-rate range test
- `rate_races`: compares the user's learning rate with others: same initial state, same batches, several
  orders
- `redrawn_weights`: do the initial weights carry signals through, and would newly drawn weights learn
  better?
- `regularisation_off`: does the model learn only when dropout and weight decay are off?
- `toy_ladder`: which is the first in a series of harder and harder toy tasks that the model can't learn?
- `wider_copy`: can a wider copy of the network learn what the network itself can't?
"""
