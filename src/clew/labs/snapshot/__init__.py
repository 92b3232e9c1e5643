"""Running the user's code again without leaving a trace: state, random numbers, batches, datasets.

Enter at `subject.py`, what an experiment works on. May import: records, measure, hooks.

- `dataset_copy`: A map-style dataset read as its loader reads it, on a copy: the program's own is not
  touched
- `failure`: an exception of the user's code, run a second time, in one line
- `finite_values`: looking at tensors without leaving a trace: are they finite, and where not?
- `held_step`: what is kept of a step so that it can be run again, and what running it again may find
- `inplace_writes`: in-place writes: which arguments an op writes to, and a journal that undoes what was
  written
- `module_state`: the attributes of an object, as they are now: to be put back, or compared
- `op_names`: what operations are called: torch's inner names turned into the ones that users write
- `op_recorder`: the one recorder of ops: what runs, in which modules, what it reads, writes and gives
- `plain_state`: state that no `state_dict` knows: plain tensors and arrays in attributes, and generators
  of one's own
- `quiet`: running code of the user's so that nobody hears of it: no output, no warnings, no hooks of
  theirs
- `sample_exhibits`: samples of a batch as a person can look at them: pictures, text, waves or rows of
  numbers
- `sample_fields`: the fields of a sample, and what became of each in a batch
- `sample_labels`: what the samples are labelled with, as far as one label (or row of numbers) goes with
  each sample
- `sample_pool`: more samples than training has seen so far: drawn from the dataset, in the form of the
  step's batches
- `snapshot`: the one way to run the user's code again and leave no trace
- `step_batch`: what one training step reads: its tensors by role, to be cut, joined and replaced
- `step_snapshot`: training steps of the program on a snapshot: from the first state, with clones of the
  optimizers
- `subject`: what an experiment is made on: the user's models, step, optimizer and data, as they were at
  first
- `time_limit`: time limits for what runs the user's code again, and why something can't be tried at all
- `users_step/`: the user's own training step as a function that can be called again
"""
