"""Where torch is wrapped: modules, losses, backward, optimizers, loaders, checkpoints.

Enter at `torch_hooks.py`. May import: records, measure, hooks.entry, hooks.steps, the collectors.

- `checkpoint_seam`: the seams of checkpoints: saving, loading, and weights that are loaded into modules
- `compiler_seam`: the seams of compilers, which must not meet our wrappers: Clew steps out while they run
- `loader_seam`: the seams of loaders: batches, and how long the program waits for them
- `loss_backward_seam`: wrappers around torch's loss functions and `backward()`
- `module_seam`: global module hooks and wrappers: module calls, where modules are created, and train/eval
  modes
- `optimizer_seam`: wrappers and hooks for optimizers: steps, zeroing, schedulers, gradient clipping, loss
  scaling
- `probes`: base for all wrappers and hooks on torch: they call the watcher in order and under a guard
- `root_forward`: wrapper around a model's `forward`, so that light steps need no hook on every layer
- `sample_indices`: sample indices of recent batches, recorded when a loader's iterator draws them
- `torch_hooks`: installs and removes all of Clew's hooks and wrappers on torch
"""
