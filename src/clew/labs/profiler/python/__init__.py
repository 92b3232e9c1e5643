"""Time spent in Python itself, by sampling its stacks.

Enter at `stack_sampler.py`. May import: records, hooks, labs.profiler.

- `call_profile`: counts and times every call in a window with cProfile, when the user asks for it
  (`--cprofile`)
- `python_time`: the share of a step spent in Python itself, and on which of the user's lines:
  `profile.python`
- `stack_flames`: turns stack samples into a flame graph, the cost of source lines, and the kinds of work
- `stack_kinds`: what a stack was doing, as one of `costs.PARTS`: based on the first landmark below the
  user's loop
- `stack_sampler`: samples the Python stack of the training thread with pyinstrument's engine during a
  window of steps
"""
