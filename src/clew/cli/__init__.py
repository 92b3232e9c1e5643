"""The command line: one verb, one file, imported when it is used.

Enter at `verbs.py`, which lists the verbs. May import: records, store, hooks, checks, labs, render, web,
session, api.

- `check`: `clew check`: the pre-flight of a training script
- `data`: `clew data`: the data that the network really gets
- `demo`: `clew demo`: a small network with two planted faults, trained under `clew run`
- `explain`: `clew explain`: the documentation of a check
- `options`: options that several verbs share, alone and in groups, and how their values are passed on
- `profile`: `clew profile`: where a training script spends its time and memory
- `replay`: `clew replay`: replays a step that failed, and checks every operation
- `report`: `clew report`: writes runs into one file that opens anywhere
- `run`: `clew run`: runs the user's program and records it
- `runs`: `clew runs`: lists and removes recorded runs
- `script_targets`: the script or module to run: refused in one line if it does not exist
- `show`: `clew show`: inspects a network before training
- `ui`: `clew ui`: the runs in the browser
- `verbs`: the commands, and the error for a wrong command line: one clear line, exit code 2
- `why`: `clew why`: the diagnosis of a recorded run
"""
