"""Where torch is wrapped: modules, losses, backward, optimizers, loaders, checkpoints.

Enter at `torch_hooks.py`. May import: records, measure, hooks.entry, hooks.steps, the collectors.

- `checkpoint_seam`: the seams of checkpoints: saving, loading, and weights that are loaded into modules
- `compiler_seam`: the seams of compilers, which must not meet our wrappers: Clew steps out while they run
- `loader_seam`: the seams of loaders: batches, and how long the program waits for them
- `loss_backward_seam`: the seams of losses and of `backward()`
- `module_seam`: the seams of modules: their calls, where they are made, and their modes
- `optimizer_seam`: the seams of optimizers: steps, zeroing, schedulers, clipping, scaling
- `probes`: how seams are made: wrapped functions and hooks that call the watcher, in order and under
  guard
- `root_forward`: following known models between samples, without a hook on every layer
- `sample_indices`: which samples are in which batch: the indices that a loader's iterator draws,
  remembered for a while
- `torch_hooks`: where Clew gets into torch: global hooks, and wrappers around the functions that have
  none
"""
