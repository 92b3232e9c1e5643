"""Where the time and memory of training go.

Enter at `profile_recorder.py`, which records a program; `profile_assembly.py` puts a profile together. May
import: records, measure, hooks, labs.snapshot.

- `call_profile`: counts and times every call in a window with cProfile, when the user asks for it
- `cost_tally`: adds up attributed windows: by module, by op, by part of the step, and as a tree
- `data_loading`: how a program loads its data: the batches of each loader, and what its datasets store
- `profile_assembly`: assembles one `Profile` from the windows, the step clock and the samplers
- `profile_recorder`: records a profile: the windows of every kind, and what they have recorded
- `profile_windows`: opens and closes the windows of a run: a few short ones, spread over its length
- `slow_patterns`: observes what costs a program time besides computing: loading, building tensors,
  evaluating
- `stack_flames`: turns stack samples into a flame graph, the cost of source lines, and the time spent in
  Python itself
- `stack_kinds`: what a stack was doing: based on the first landmark below the user's loop
- `stack_sampler`: samples the Python stack of the training thread during a window of steps
- `window_contents`: reads recorded windows: attributes their events and adds them up, as plain data of
  `step_costs`
- `step_experiments/`: the user's step against the same step with one change, on a snapshot
- `memory/`: memory of tensors and processes, and what keeps it growing
- `torch_trace/`: windows of torch's own profiler, and which module, op and line each event belongs to
"""
