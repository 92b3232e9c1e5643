"""Profiles as files that other tools open.

Enter at `profile_exports.py`. May import: as render.

- `chrome_trace`: the trace of the steps looked at, in the format that Perfetto, chrome://tracing and
  TensorBoard open
- `profile_exports`: A profile as files that other tools open: a table, traces, stacks, and a page
- `pstats_file`: Python's stacks as a `.prof` file, which pstats and snakeviz read
- `speedscope`: the flames of a profile in the file format of speedscope: time, Python's stacks, memory
"""
