"""The compiled statistics loops (C) and what loads them.

Enter at `compiled_library.py`. May import: nothing but records and measure.

- `addresses`: memory addresses of an optimizer's parameters or gradients, looked up by the kernel in one
  call
- `compiled_library`: loads the compiled library with the statistics loops (kernel.c)
- `kernel.c`: the statistics loops
- `native_functions`: kernel functions as Python built-in functions, without ctypes
- `python.h`: what both need of Python's C API
- `steps.c`: steps noted without Python
"""
