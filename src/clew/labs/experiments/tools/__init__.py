"""What several experiments use.

Enter at `short_training.py`. May import: as labs.experiments.

- `autograd_functions`: tests the user's own autograd functions, each alone, with the inputs it received
  in the step
- `directional_derivative`: compares autograd's directional derivative with finite differences at
  shrinking step sizes
- `fixes`: the fixes that can be tried without the user, and what each one changes in the training loop
- `float64_step`: runs the user's step in double precision, where finite differences are accurate
- `labelled_samples`: samples with features and labels, in the form the data experiments need
- `loss_bounds`: the lowest loss that is possible, and the lowest that is possible without using the input
- `op_tape`: records one forward op by op: what is kept of each result, and the module and line it came
  from
- `reference_learners`: cheap learners to compare with: linear and kernel ridge regression, and nearest
  neighbours
- `sample_leaks`: finds leaks between samples: a model's output for one sample that depends on the rest of
  the batch
- `short_training`: short trainings on a snapshot: other learning rates, other optimizers, regularisation
  switched off
- `trial_loop`: the training loop that a fix is tried in: as the program runs it, or with one thing
  changed
"""
