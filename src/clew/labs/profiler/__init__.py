"""Where the time and memory of training go.

Enter at `profile_windows.py` opens windows, `profile_assembly.py` puts a profile together. May import:
records, measure, hooks, labs.snapshot.

- `cost_tally`: adds up attributed windows: by module, by op, by part of the step, and as a tree
- `profile_assembly`: assembles one `Profile` from the windows, the step clock and the samplers
- `profile_windows`: opens and closes the windows of a run as scheduled, and reports every step to them
- `step_parts`: A step by its parts, over all timed steps: median, p95, and the share of all time
- `window_contents`: reads recorded windows: attributes their events, adds them up, and returns the plain
  data of `costs`
- `window_kinds`: the kinds of windows that a run is profiled with, and what each has recorded
- `window_schedule`: when to profile: a few short windows of steps, spread over a run of unknown length
- `attempts/`: the user's step against the same step with one change, on a snapshot
- `habits/`: what a program does beside computing that costs time
- `memory/`: memory of tensors and processes, and what keeps it growing
- `python/`: time spent in Python itself, by sampling its stacks
- `torch_trace/`: windows of torch's own profiler, and whose time each event was
"""
