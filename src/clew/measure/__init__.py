"""Reduces a tensor to a few numbers.

Enter at `stats.py`. May import: records.

- `deferred_values`: deferred values: numbers that are still on an accelerator, fetched together a step
  later
- `gradient_norm`: gradient norm over all parameters of an optimizer, cheap enough to compute before every
  step
- `loss_arguments`: the arguments of a call of one of torch's loss functions, however they were passed
- `nested_tensors`: tensors in nested values: tuples, lists, dicts, dataclasses, packed sequences and
  pytrees
- `readable_tensors`: which tensors can be read, and the values of any kind of tensor as one plain real
  tensor
- `rng`: random generators: read, restore and seed their states
- `stats`: tensor statistics from one pass over a tensor's memory: mean, std, min, max, norm, zeros,
  histogram
- `stats_torch`: tensor statistics in torch ops: for accelerators, and for a CPU without the compiled
  kernel
- `kernel/`: the compiled statistics loops (C) and what loads them
"""
