"""Running the user's code again without leaving a trace: state, random numbers, batches, datasets.

Enter at `subject.py`, what an experiment works on. May import: records, measure, hooks.

- `dataset_copy`: reads a copy of a map-style dataset the way its loader does; the program's dataset is
  not touched
- `failure`: describes an exception of replayed user code in one line
- `finite_values`: are a tensor's values finite, and where not? Leaves no trace in the program
- `held_step`: what is kept of a step so that it can be run again, and what a replay can find
- `inplace_writes`: in-place writes: which arguments an op writes to, and a journal that undoes the writes
- `module_state`: the attributes of an object at one moment: to restore them or to compare them
- `op_names`: names of operations: torch's internal names mapped to the ones that users write
- `op_recorder`: the one recorder of ops: what runs, in which modules, what it reads, writes and returns
- `plain_state`: state that no `state_dict` contains: tensors and arrays in plain attributes, and the
  user's generators
- `quiet`: runs user code silently: no output, no warnings, and none of the user's hooks
- `sample_exhibits`: samples of a batch in a form people can look at: images, text, waveforms or rows of
  numbers
- `sample_fields`: the fields of a sample, and the field of a batch that each one ends up in
- `sample_labels`: the labels of samples, where each sample has exactly one label or row of numbers
- `sample_pool`: draws more samples from the dataset than training has seen, in the form of the step's
  batches
- `snapshot`: the one way to run the user's code again and leave no trace
- `step_batch`: the batch of one training step: its tensors by role, to be cut, joined and replaced
- `step_snapshot`: runs the program's training steps on a snapshot: from the initial state, with cloned
  optimizers
- `subject`: the subject of an experiment: the user's models, step, optimizer and data, in their initial
  state
- `time_limit`: time limits for running the user's code again, and the exception that says why something
  can't be tried
- `users_step/`: the user's own training step as a function that can be called again
"""
