"""The way in: launching a script, waiting for torch, patching it, guarding every probe.

Enter at `launcher.py` for scripts, `after_import.py` for torch. May import: records.

- `after_import`: import hook that runs a callback once the program has imported a module
- `guard`: the guard around every probe: no failure of Clew's may reach the user's training
- `launcher`: script launcher: runs the user's program in this process, as plain `python` would, and
  removes Clew's frames from tracebacks
- `module_hooks`: hooks around every call of a module, which leave nothing in torch when they are removed
- `patches`: patches of functions in other modules: invisible in tracebacks and warnings, and reversible
- `sink`: interface to which hooks write what they record. The store's log writer implements it; tests use
  a list
- `user_line`: file and line of the user's own code that is running now, and the user's names for an object
"""
