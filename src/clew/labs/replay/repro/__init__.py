"""A step that went wrong, saved to a folder that runs on its own.

Enter at `repro_writer.py` writes it, `saved_step.py` runs it. May import: records, hooks, labs.snapshot,
labs.replay.

- `global_variables`: the variables of a script that its functions and classes read
- `importable_names`: where classes, functions and modules can be found again by name, checked by looking
  there
- `rebuilt_step`: makes the objects of a saved step again, and runs it: models, batch, random state. Loads
  no pickle
- `repro_scripts`: the text of the files in a repro folder
- `repro_writer`: A step that went wrong, written to a folder from which it can be run again, alone
- `saved_description`: models, batches and what else a step needs, as JSON and tensors: the counterpart of
  `values`
- `saved_sources`: classes and functions of a saved step, found again in the program's own source
- `saved_step`: A saved step run again under the microscope, long after its process has ended
- `saved_values`: values of a saved step made from JSON and tensors: the counterpart of `describing`
"""
