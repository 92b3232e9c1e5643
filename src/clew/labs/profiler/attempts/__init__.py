"""The user's step against the same step with one change, on a snapshot.

Enter at `faster_attempts.py`. May import: records, hooks, labs.snapshot, labs.profiler.

- `batch_size_sweep`: `--batch-sizes`: samples per second and memory against the size of a batch, on a
  snapshot
- `compiled_step`: torch.compile of the models, for the time of an attempt: with the places where it gives
  up
- `faster_attempts`: `--try`: the user's step as it is against the step with one change, on a snapshot, in
  turn
- `paired_rounds`: two ways of doing the same, timed in turn: what disturbs the machine disturbs both
- `same_results`: whether two ways of making a step compute the same: outputs, loss, gradients, update
- `step_changes`: the changes that are tried: what each would be in the user's code, and how the step is
  made with it
- `step_memory`: what one training step on a snapshot holds at most: its tensors, and the process when
  they are there
- `trainee`: the user's whole training step on a snapshot, to be made again and again in one way or
  another
"""
