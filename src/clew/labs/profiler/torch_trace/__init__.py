"""Windows of torch's own profiler, and whose time each event was.

Enter at `kineto_window.py`. May import: records, hooks, labs.profiler.

- `attribution`: whose time it was: every event of a window is given to a part of the step, a module and
  an op
- `host_syncs`: where the host asks a tensor for its numbers: on an accelerator it waits there for all
  that was queued
- `kineto_window`: one window of steps under torch's profiler: opened and closed between steps, read when
  there is time
- `module_scopes`: which module is running, written into torch's trace while a window is open
- `op_numbers`: what an op was given and what it must at least have done: shapes, arguments, operations,
  bytes
- `profiler_stderr`: Torch's profiler says things on stderr that are of no use to the user, who did not
  ask for it
- `roofline`: what this machine can do at best: a matrix product and a copy, measured once and kept in the
  cache
- `torch_events`: Torch's raw events as plain rows, in the order in which they began
- `trace_ranges`: named ranges in torch's trace: the marks by which the events in it are told apart
  afterwards
"""
