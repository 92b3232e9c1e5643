"""Profiles on the terminal, compared, and as pages.

Enter at `profile_terminal.py`. May import: as render.

- `attempts_terminal`: what was tried on a snapshot, and what batches of other sizes give, as tables on a
  terminal
- `cost_tables`: what of a program the time goes to: modules, ops, lines of source, and waits for numbers
- `flame_html`: the flame graphs of a profile as one HTML file: the page of the browser with nothing but
  them in it
- `flame_text`: A flame graph in letters: a line for each depth, every frame as wide as its share
- `memory_text`: the memory of a profile: tensors by kind, processes, and what grows
- `module_tree`: the modules of a profile as a tree, with equal blocks in a row folded into one line
- `profile_diff`: what became slower or faster between two profiles, and what is only noise
- `profile_diff_terminal`: two profiles beside each other: what differs in the settings, then what became
  slower or faster
- `profile_terminal`: A profile on a screen: where a step goes, which modules, ops and lines it is, what
  it holds, what to do
- `recorded_profile`: the profile of a recorded run, from its folder. Whatever stands there is taken as
  hostile
- `files/`: profiles as files that other tools open
"""
