"""A step that went wrong, saved to a folder that runs on its own.

Enter at `repro_writer.py` writes it, `saved_step.py` runs it. May import: records, hooks, labs.snapshot,
labs.replay.

- `global_variables`: the global variables of a script that its functions and classes read
- `importable_names`: import paths of classes, functions and modules, verified by looking them up
- `rebuilt_step`: makes the objects of a saved step again, and runs it: models, batch, random state. Loads
  no pickle
- `repro_scripts`: the text of the files in a repro folder
- `repro_writer`: writes a failed step to a repro folder, from which it can be run again on its own
- `saved_description`: describes models, batches and the rest of a step as JSON and tensors; see
  `saved_values`
- `saved_sources`: finds the classes and functions of a saved step in the program's own source
- `saved_step`: runs a saved step again under the microscope, after its process has ended
- `saved_values`: rebuilds the values of a saved step from JSON and tensors; see `saved_description`
"""
