"""Memory of tensors and processes, and what keeps it growing.

Enter at `growth_watch.py`. May import: records, hooks, labs.profiler.

- `allocations`: what torch's profiler saw being allocated and freed in one step, and in which module's
  forward
- `growth_owners`: which of the things that a program holds grow, what they hold, and which of them to
  blame
- `growth_slope`: does it grow? A robust line through readings, and whether it stands out from what memory
  does anyway
- `growth_watch`: does the memory of the run grow from step to step, and who holds what grows: the fact
  `growth`
- `live_tensors`: the tensors that a program holds between two steps: parameters, gradients, optimizer
  state, the rest
- `named_objects`: what a program holds by a name, and how much of it there is: two surveys tell what
  grows
- `process_memory`: the memory of the training process and of those it has started, read now and then
- `source_mentions`: where the user's source makes a thing grow: `losses.append(loss)`, `total += loss`,
  `kept[key] = value`
- `tensor_memory`: the memory of tensors in one step: how much there is at each moment, at the peak of
  what, in which module
"""
