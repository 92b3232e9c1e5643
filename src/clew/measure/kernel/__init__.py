"""The compiled statistics loops (C) and what loads them.

Enter at `compiled_library.py`. May import: nothing of Clew's.

- `compiled_library`: loads the compiled library (kernel.c), makes its functions callable, and gives it
  torch's threads
- `kernel.c`: the statistics loops
- `python.h`: what both need of Python's C API
- `steps.c`: steps noted without Python
"""
