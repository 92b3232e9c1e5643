"""Running the user's code again without leaving a trace: state, random numbers, batches, datasets.

Enter at `subject.py`, what an experiment works on. May import: records, measure, hooks.

- `dataset_copy`: reads a copy of a map-style dataset the way its loader does; the program's dataset is
  not touched
- `dataset_stages`: the stages a sample passes: nested datasets, their methods, transforms and functions,
  and collate
- `inplace_writes`: in-place writes: which arguments an op writes to, and a journal that undoes the writes
- `module_state`: state that no `state_dict` contains: attributes of objects, tensors and arrays in them,
  generators
- `nonfinite_values`: non-finite values: which elements of a tensor they are, the step they appeared in,
  and what produced them
- `op_recorder`: the one recorder of ops: what runs, in which modules, what it reads, writes and returns
- `sample_exhibits`: samples of a batch in a form people can look at: images, text, waveforms or rows of
  numbers
- `sample_fields`: the fields of a sample or batch, by key, field name or position: `image`, `meta.size`,
  `0`, `1.2`
- `sample_pool`: draws more samples from the dataset than training has seen, in the form of the step's
  batches
- `snapshot`: the one way to run the user's code again and leave no trace
- `step_batch`: the batch of one training step: its tensors by role, to be cut, joined and replaced
- `step_snapshot`: runs the program's training steps on a snapshot: from the initial state, with cloned
  optimizers
- `subject`: the subject of an experiment: the user's models, step, optimizer and data, in their initial
  state
- `time_limit`: running the user's code again may take too long, be impossible, or fail: the clock, and
  the exceptions
- `users_step/`: the user's own training step as a function that can be called again
"""
