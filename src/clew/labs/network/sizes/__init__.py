"""Sizes with names: `batch`, `height//2`.

Enter at `named_sizes.py`. May import: records, hooks, labs.snapshot, labs.network.

- `named_sizes`: runs the forward again with a symbol for each size that the user named
- `resized_forward`: runs the same forward at a few other sizes: does it work there, and what are the
  output shapes?
- `size_fits`: derives how a size depends on the named sizes, from forwards at a few other sizes
- `size_formulas`: formats a size in terms of the named sizes: `batch·time`, `8·(height//8)`,
  `ceil(height/2)`
"""
