"""Where torch is wrapped: modules, losses, backward, optimizers, loaders, checkpoints.

Enter at `torch_hooks.py`. May import: records, hooks.collect_layers, hooks.collect_loop, hooks.entry,
hooks.steps.

- `loader_seam`: the seams of loaders: batches, how long the program waits for them, and the indices of
  their samples
- `loss_backward_seam`: wrappers around torch's loss functions and `backward()`
- `module_seam`: wrappers and hooks on modules: calls, root models, where modules are created, and
  train/eval modes
- `optimizer_seam`: wrappers and hooks for optimizers: steps, zeroing, schedulers, gradient clipping, loss
  scaling
- `probes`: base for all wrappers and hooks on torch: they call the watcher in order and under a guard
- `torch_hooks`: installs and removes all of Clew's hooks and wrappers on torch; the seams of checkpoints
  and compilers
"""
