"""The command line: one verb, one file, imported when it is used.

Enter at `verbs.py`, which lists the verbs. May import: everything.

- `check`: `clew check`: the pre-flight of a training script
- `data`: `clew data`: what the network is really fed
- `demo`: `clew demo`: a small network with two planted faults, trained under `clew run`
- `explain`: `clew explain`: the documentation of a check
- `options`: the options of the verbs: those that several have, the groups of them, and what becomes of
  them
- `profile`: `clew profile`: where the time and the memory of a training script go
- `recorded_profiles`: what `clew profile` does with runs that are recorded already: show, export and
  compare them
- `replay`: `clew replay`: a step that went wrong, run again with every operation checked
- `report`: `clew report`: runs as one file that opens anywhere
- `run`: `clew run`: the user's program, watched
- `runs`: `clew runs`: what was recorded, and removing it
- `script_targets`: what is to be run: refused in one line if it is not there, before anything is recorded
- `show`: `clew show`: what is in a network, before anything is trained
- `ui`: `clew ui`: the runs in the browser
- `verbs`: the verbs, and what happens when a command line makes no sense: one clear line, exit code 2
- `why`: `clew why`: the diagnosis of a recorded run
"""
