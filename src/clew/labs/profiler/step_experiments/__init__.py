"""The user's step against the same step with one change, on a snapshot.

Enter at `faster_experiments.py`. May import: records, measure, hooks, labs.profiler.torch_trace,
labs.snapshot.

- `batch_size_sweep`: `--batch-sizes`: samples per second and memory at several batch sizes, on a snapshot
- `compiled_step`: compiles the models with torch.compile for one experiment, and lists the graph breaks
- `faster_experiments`: `--try`: times the user's step against the step with one change, alternating, on a
  snapshot
- `same_results`: do two variants of a step compute the same? Compares outputs, loss, gradients and update
- `step_changes`: the changes that are tried: what each one means in the user's code, and how the step
  runs with it
- `step_runner`: the user's whole training step on a snapshot, run in different variants and timed in
  alternation
"""
