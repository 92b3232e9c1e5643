"""Windows of torch's own profiler, and whose time each event was.

Enter at `kineto_window.py`. May import: records, hooks, labs.profiler.

- `attribution`: attributes every event of a window to a part of the step, a module and an op
- `host_syncs`: finds host syncs: calls that read a tensor's values and wait for all queued work on an
  accelerator
- `kineto_window`: one window of steps under torch's profiler: opened and closed between steps, read later
- `module_scopes`: writes the running module into torch's trace while a window is open
- `op_numbers`: the inputs of an op and its minimal work: shapes, arguments, operations, bytes
- `profiler_stderr`: silences messages of torch's profiler on stderr, which are of no use to the user
- `roofline`: peak performance of this machine: a matrix product and a copy, measured once and cached
- `torch_events`: Torch's raw events as plain rows, sorted by start time
- `trace_ranges`: named ranges in torch's trace, used to identify its events afterwards
"""
