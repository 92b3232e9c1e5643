"""Attaches to a training program and detaches again; never changes what training computes.

Enter at `seams/torch_hooks.py`, which installs everything, and `steps/step_machine.py`, which decides who
records a step. May import: records, measure.

- `collect_layers/`: what is collected of layers: activations, parameters, histograms, structure
- `collect_loop/`: what is collected of the training loop: losses, batches, evaluation, optimizers,
  schedulers
- `entry/`: the way in: launching a script, waiting for torch, patching it, guarding every probe
- `seams/`: where torch is wrapped: modules, losses, backward, optimizers, loaders, checkpoints
- `steps/`: the step machine: which step it is, whether it is sampled, and what is recorded of it
"""
