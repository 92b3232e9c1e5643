"""What several experiments use.

Enter at `short_training.py`. May import: as labs.experiments.

- `autograd_functions`: autograd functions that the user wrote, each tried alone with the inputs it really
  got
- `causal_sequence`: is a model meant to be causal, and which of its inputs is the sequence it goes along?
- `directional_derivative`: autograd's directional derivative against finite differences, at shrinking
  step sizes
- `fix_proof`: proof by intervention: the same steps as the program is and with the fix, from the same
  start
- `fixes`: the fixes that can be tried without the user: for each, what is changed in the loop
- `float64_step`: the user's step in double precision, where finite differences are sharp
- `labelled_samples`: samples with features and labels, as the experiments on data need them
- `loss_bounds`: how low a loss can come, and how low one comes without looking at the input
- `op_tape`: one forward, op by op: what is kept of each result, in which module it was made and on which
  line
- `prediction_match`: which output of a model a target speaks of, and what a better and a worse prediction
  would be
- `random_transforms`: the random transforms of a dataset, found and switched off one by one on a copy
- `rate_races`: the user's learning rate beside others: the same start, the same batches, other orders of
  them
- `reference_learners`: cheap learners to compare with: ridge regression, straight and bent, and nearest
  neighbours
- `sample_leaks`: does what a model says of one sample depend on the other samples of the batch?
- `short_training`: short trainings on a snapshot: with other rates, other optimizers, and without what
  disturbs learning
- `toy_tasks`: toy tasks in the shape of the real one: the user's own step, with targets that are easy to
  learn
- `trial_loop`: A training loop as the program runs it, or with one thing changed: what a trial of a fix
  compares
- `user_modules`: modules that the user wrote, each with the arguments it got in a step
- `wider_layers`: the same network with wider hidden layers, put in place of the narrow ones for the time
  of a snapshot
"""
