"""Memory of tensors and processes, and what keeps it growing.

Enter at `growth_watch.py`. May import: records, hooks, labs.profiler.

- `allocations`: the allocations and frees that torch's profiler recorded in one step, by the module they
  happened in
- `growth_owners`: finds which of a program's objects grow, what they keep references to, and which ones
  to blame
- `growth_slope`: does memory grow? Fits a robust line to the readings and compares its slope with their
  noise
- `growth_watch`: does memory grow from step to step, and which objects grow? Records the fact `growth`
- `live_tensors`: the tensors alive between two steps: parameters, gradients, optimizer state, and the
  rest
- `named_objects`: the named objects of a program and their sizes; comparing two surveys shows what grows
- `process_memory`: reads the memory of the training process and its child processes at intervals
- `source_mentions`: lines that make an object grow: `losses.append(loss)`, `total += loss`, `kept[key] =
  value`
- `tensor_memory`: tensor memory during one step: how much at each moment, and the contents of the peak by
  module
"""
