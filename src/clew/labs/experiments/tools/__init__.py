"""What several experiments use.

Enter at `short_training.py`. May import: records, measure, labs.snapshot.

- `float64_step`: runs the user's step in double precision, where finite differences are accurate
- `gradcheck`: compares autograd's directional derivative with finite differences at shrinking step sizes
- `labelled_samples`: samples and their labels, where each sample has exactly one label or row of numbers
- `loss_bounds`: measures the loss, the lowest that is possible, and the lowest that is possible without
  using the input
- `op_tape`: records one forward op by op: what is kept of each result, and the module and line it came
  from
- `rate_trainings`: trainings of a few dozen steps at different learning rates, each run once and shared
  by experiments
- `reference_learners`: cheap learners to compare with: linear and kernel ridge regression, and nearest
  neighbours
- `replaced_samples`: one model call, repeated with some samples replaced: whose output depends on the
  others in its batch
- `short_training`: short trainings on a snapshot: other learning rates, other optimizers, regularisation
  switched off
"""
