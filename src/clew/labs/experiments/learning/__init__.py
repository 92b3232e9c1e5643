"""Experiments that train for a few steps.

Enter at the experiment's file. May import: records, labs.experiments, labs.experiments.tools,
labs.snapshot.

- `gradient_noise`: `batch-size-unfit`: how much do the gradients of single batches differ? Measures the
  gradient noise scale
- `growing_subsets`: `too-few-examples`: would more samples help? Trains the user's model on a quarter, a
  half and all of the samples
- `learning_rates`: `learning-rate-too-low`, `learning-rate-too-high`, `hyperparameters-off`: is the
  learning rate right? Compares it with others, and sweeps over it (the range test)
- `other_optimizers`: `optimizer-unfit`: does another optimizer get much further at any learning rate?
- `overfit_batch`: `cannot-overfit-batch`: can the model memorise a few samples?
- `redrawn_weights`: `poor-initialisation`: do the initial weights carry signals through, and would newly
  drawn weights learn better?
- `regularisation_off`: `over-regularised`: does the model learn only when dropout and weight decay are
  off?
- `toy_tasks`: `toy-task-failed`: which is the first in a series of harder and harder toy tasks that the
  model can't learn?
- `wider_copy`: `capacity-too-small`: can a wider copy of the network learn what the network itself can't?
"""
