"""What several experiments use.

Enter at `short_training.py`. May import: as labs.experiments.

- `autograd_functions`: autograd functions that the user wrote, each tried alone with the inputs it really
  got
- `directional_derivative`: autograd's directional derivative against finite differences, at shrinking
  step sizes
- `fixes`: the fixes that can be tried without the user: for each, what is changed in the loop
- `float64_step`: the user's step in double precision, where finite differences are sharp
- `labelled_samples`: samples with features and labels, as the experiments on data need them
- `loss_bounds`: how low a loss can come, and how low one comes without looking at the input
- `op_tape`: one forward, op by op: what is kept of each result, in which module it was made and on which
  line
- `reference_learners`: cheap learners to compare with: ridge regression, straight and bent, and nearest
  neighbours
- `sample_leaks`: does what a model says of one sample depend on the other samples of the batch?
- `short_training`: short trainings on a snapshot: with other rates, other optimizers, and without what
  disturbs learning
- `trial_loop`: A training loop as the program runs it, or with one thing changed: what a trial of a fix
  compares
"""
