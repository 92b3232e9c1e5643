"""Time spent in Python itself, by sampling its stacks.

Enter at `stack_sampler.py`. May import: records, hooks, labs.profiler.

- `call_profile`: every call of the steps in a window, counted and timed by cProfile: for those who ask
  (`--cprofile`)
- `python_time`: how much of a step is Python itself, and on which of the user's lines: the fact
  `profile.python`
- `stack_flames`: from samples to what is shown of them: a flame of calls, the cost of source lines, the
  kinds of work
- `stack_kinds`: what a stack was doing, in the words of `costs.PARTS`: told by the first landmark below
  the user's loop
- `stack_sampler`: Python's stacks on the training thread, sampled by pyinstrument's engine while a window
  of steps runs
"""
