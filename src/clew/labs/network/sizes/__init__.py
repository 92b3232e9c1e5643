"""Sizes with names: `batch`, `height//2`.

Enter at `named_sizes.py`. May import: records, hooks, labs.snapshot, labs.network.

- `named_sizes`: sizes with names: the same forward once more, with symbols for the sizes that the user
  named
- `resized_forward`: the same forward at a few other sizes: does it work there, and what comes out?
- `size_fits`: how a size depends on the named ones, found from forwards at a few other sizes
- `size_formulas`: A size that depends on names, as people write it: `batch·time`, `8·(height//8)`,
  `ceil(height/2)`
"""
