"""Profiles on the terminal, compared, and as pages.

Enter at `profile_terminal.py`. May import: as render.

- `attempts_terminal`: speed-ups tried on a snapshot, and the batch-size sweep, as tables in the terminal
- `cost_tables`: where the time of a program goes: modules, ops, source lines, and host syncs
- `flame_html`: the flame graphs of a profile as one HTML file: the browser page with nothing else in it
- `flame_text`: A flame graph as text: one line per depth, every frame as wide as its share
- `memory_text`: the memory section of a profile: tensors by kind, processes, and what grows
- `module_tree`: the modules of a profile as a tree, with consecutive identical blocks folded into one
  line
- `profile_diff`: compares two profiles: what became slower or faster, and what is only noise
- `profile_diff_terminal`: the diff of two profiles in the terminal: settings first, then what became
  slower or faster
- `profile_terminal`: A profile in the terminal: step parts, modules, ops, lines, memory, and what to do
- `recorded_profile`: reads the profile of a recorded run from its folder. The contents are not trusted
- `files/`: profiles as files that other tools open
"""
