"""Where the time and memory of training go.

Enter at `profile_windows.py` opens windows, `profile_assembly.py` puts a profile together. May import:
records, measure, hooks, labs.snapshot.

- `cost_tally`: attributed windows added up: by module, by op, by part, and as a tree
- `profile_assembly`: what the windows, the clock and the samplers found, put together as one `Profile`
- `profile_windows`: the windows of a run: opened, told of every step, and closed, by what the schedule
  says
- `step_parts`: A step by its parts, over all steps that were timed: median and p95, and the share of all
  time
- `window_contents`: recorded windows, read: attributed, added up, and as the plain data of `costs`
- `window_kinds`: the kinds of windows that a run is looked at through, and what they have seen
- `window_schedule`: when to look closely: a few short windows of steps, spread over a run of unknown
  length
- `attempts/`: the user's step against the same step with one change, on a snapshot
- `habits/`: what a program does beside computing that costs time
- `memory/`: memory of tensors and processes, and what keeps it growing
- `python/`: time spent in Python itself, by sampling its stacks
- `torch_trace/`: windows of torch's own profiler, and whose time each event was
"""
