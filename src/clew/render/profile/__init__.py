"""Profiles on the terminal, compared, and as pages.

Enter at `profile_terminal.py`. May import: records, store, checks, render, render.verdict.

- `tried_changes_terminal`: speed-ups tried on a snapshot, and the batch-size sweep, as tables in the terminal
- `cost_tables`: where the time of a program goes: the tree of modules, ops, source lines, and host syncs
- `flame_graph`: flame graphs: as text, every frame as wide as its share, and as one HTML file with
  nothing else in it
- `profile_diff`: compares two profiles: what became slower or faster, and what is only noise
- `profile_diff_terminal`: the diff of two profiles in the terminal: settings first, then what became
  slower or faster
- `profile_exports`: exports a profile to files that other tools open: a table, traces, stacks, and a page
- `profile_terminal`: a profile in the terminal: step parts, modules, ops, lines, memory, and what to do
- `recorded_profile`: reads the profile of a recorded run from its folder. The contents are not trusted
"""
