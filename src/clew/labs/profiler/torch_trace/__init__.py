"""Windows of torch's own profiler, and which module, op and line each event belongs to.

Enter at `kineto_window.py`. May import: records, measure, hooks, labs.profiler, labs.profiler.memory.

- `attribution`: attributes every event of a window to a part of the step, a module and an op
- `host_syncs`: finds host syncs: calls that read a tensor's values and wait for all queued work on an
  accelerator
- `kineto_window`: one window of steps under torch's profiler: opened and closed between steps, read later
- `module_scopes`: writes the running module into torch's trace while a window is open
- `roofline`: how much work an op does at least, and how fast this machine could do it
- `torch_events`: torch's raw events as plain rows, and the named ranges that Clew adds to them
"""
