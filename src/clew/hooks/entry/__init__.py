"""The way in: launching a script, waiting for torch, patching it, guarding every probe.

Enter at `launcher.py` for scripts, `after_import.py` for torch. May import: records.

- `after_import`: run a callback once a module has been imported by somebody else
- `guard`: no failure of ours may reach the user's training: every probe runs under a guard
- `launcher`: run the user's program in this process, so that it sees what it would see under plain
  `python`
- `patches`: replacing a function in someone else's module, invisibly and reversibly
- `sink`: where attached code puts what it saw. The store's writer has this shape; tests use a list
- `tracebacks`: take Clew's own frames out of an uncaught exception, so that it reads as it would without
  us
- `user_line`: which line of the user's own source are we in?
- `variable_names`: what a program calls an object: the variables that hold it, from the innermost
  function outwards
"""
