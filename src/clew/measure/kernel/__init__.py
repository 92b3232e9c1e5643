"""The compiled statistics loops (C) and what loads them.

Enter at `compiled_library.py`. May import: nothing but records and measure.

- `addresses`: where the parameters of an optimizer lie, or their gradients: looked up by the kernel in
  one call
- `compiled_library`: finding and calling the compiled statistics loops (kernel.c)
- `kernel.c`: the statistics loops
- `native_functions`: functions of the kernel as functions of Python's own kind
- `python.h`: what both need of Python's C API
- `steps.c`: steps noted without Python
"""
