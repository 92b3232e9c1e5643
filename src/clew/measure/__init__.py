"""A tensor becomes a few numbers.

Enter at `stats.py`. May import: records.

- `deferred_values`: numbers that are still on an accelerator
- `gradient_norm`: the norm over all gradients of an optimizer, as cheap as it can be asked before every
  step
- `histogram`: A tensor becomes a small histogram: its range, and counts in bins of equal width
- `layer_row`: one call of the kernel for the row of a layer: its statistics, dead units and saturated
  values
- `nested_tensors`: tensors inside what a model takes and gives: in tuples, lists, dicts, dataclasses,
  packed sequences
- `plain_values`: the numbers that a tensor of any kind holds, as one plain real tensor: enough for its
  norm, and to see NaN
- `readable_tensors`: which tensors can be read, and what of the others still can be told
- `rng`: random generators: how their states are read, set again, and seeded; the one place where that is
  done
- `scalar`: the single number that a tensor holds, where that can be told at once: asked before every
  backward
- `stats`: what one pass over a tensor's memory tells
- `stats_torch`: the same statistics in torch ops: for accelerators, and for a CPU without the compiled
  kernel
- `torch_threads`: large tensors are read by all of torch's threads
- `kernel/`: the compiled statistics loops (C) and what loads them
"""
