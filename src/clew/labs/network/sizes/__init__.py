"""Sizes with names: `batch`, `height//2`.

Enter at `named_sizes.py`. May import: measure, labs.network, labs.network.trace.

- `named_sizes`: runs the forward again with a symbol for each size that the user named
- `resized_forward`: runs the same forward at a few other sizes: does it work there, and what are the
  output shapes?
- `size_formulas`: how a size depends on the named sizes: finds a formula from a few forwards, and formats it
"""
