"""Profiles as files that other tools open.

Enter at `profile_exports.py`. May import: as render.

- `chrome_trace`: the trace of the profiled steps, in the format of Perfetto, chrome://tracing and
  TensorBoard
- `profile_exports`: exports a profile to files that other tools open: a table, traces, stacks, and a page
- `pstats_file`: Python stacks as a `.prof` file, for pstats and snakeviz
- `speedscope`: the flame graphs of a profile as a speedscope file: time, Python stacks, memory
"""
