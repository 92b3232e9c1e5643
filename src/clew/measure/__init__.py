"""A tensor becomes a few numbers.

Enter at `stats.py`. May import: records.

- `deferred_values`: deferred values: numbers that are still on an accelerator, fetched together a step
  later
- `gradient_norm`: gradient norm over all parameters of an optimizer, cheap enough to compute before every
  step
- `histogram`: histogram of a tensor: its range, and counts in bins of equal width
- `layer_row`: one kernel call that fills the row of a layer: statistics, dead units and saturated values
- `nested_tensors`: tensors in nested values: tuples, lists, dicts, dataclasses, packed sequences and
  pytrees
- `plain_values`: values of any kind of tensor as one plain real tensor: enough for its norm and to find
  NaN
- `readable_tensors`: which tensors can be read, and what can still be said about the others
- `rng`: random generators: read, restore and seed their states. The only place that does so
- `scalar`: the value of a one-element tensor, if it can be read without waiting; used before every
  backward
- `stats`: tensor statistics from one pass over a tensor's memory: mean, std, min, max, norm, zeros,
  histogram
- `stats_torch`: tensor statistics in torch ops: for accelerators, and for a CPU without the compiled
  kernel
- `torch_threads`: Torch's threads, used to read large tensors in parallel
- `kernel/`: the compiled statistics loops (C) and what loads them
"""
