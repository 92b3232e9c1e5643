"""A step that went wrong, saved to a folder that runs on its own.

Enter at `repro_writer.py`, which writes it, and `saved_step.py`, which runs it. May import: records,
measure, hooks, labs.replay, labs.snapshot.

- `program_names`: what a saved step takes from the program by name: classes, functions, modules and global
  variables
- `rebuilt_step`: rebuilds the objects of a saved step (models, batch, random state) and runs it. Loads no
  pickle
- `repro_scripts`: the text of the files in a repro folder
- `repro_writer`: writes a failed step to a repro folder, from which it can be run again on its own
- `saved_description`: describes models, batches and the rest of a step as JSON and tensors; see
  `saved_values`
- `saved_sources`: finds the classes and functions of a saved step in the program's own source
- `saved_step`: runs a saved step again under the microscope, after its process has ended
- `saved_values`: rebuilds the values of a saved step from JSON and tensors; see `saved_description`
"""
