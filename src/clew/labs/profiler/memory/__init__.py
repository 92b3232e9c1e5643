"""Memory of tensors and processes, and what keeps it growing.

Enter at `growth_watch.py`. May import: records, hooks, labs.profiler, labs.profiler.torch_trace.

- `growth_owners`: finds which of a program's objects grow, what they keep references to, and which ones
  to blame
- `growth_watch`: does memory grow from step to step, and which objects grow? Records the fact `growth`
- `memory_window`: one step under torch's profiler with its memory, and the tensors alive before and after
- `named_objects`: the named objects of a program and their sizes; comparing two surveys shows what grows
- `process_memory`: reads the memory of the training process and its child processes at intervals: does it
  grow?
- `tensor_memory`: tensor memory during one step: how much at each moment, and the contents of the peak by
  module
"""
