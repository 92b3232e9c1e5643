"""Running the user's code again without leaving a trace: state, random numbers, batches, datasets.

Enter at `subject.py`, what an experiment works on. May import: records, measure, hooks.

- `dataset_copy`: A map-style dataset read as its loader reads it, on a copy: the program's own is not
  touched
- `failure`: an exception of the user's code, run a second time, in one line
- `finite_values`: looking at tensors without leaving a trace: are they finite, and where not?
- `fork`: A place to try something in: the program's own modules, with everything put back afterwards
- `held_step`: what is kept of a step so that it can be run again, and what running it again may find
- `inplace_writes`: in-place writes of a replay: noticed before they happen, and undone after it
- `loss_gradients`: the gradients of a loss, without leaving any of them behind
- `module_state`: run somebody's model and leave it as it was: state, modes, hooks, gradients, random
  numbers
- `nested_tensors`: tensors inside whatever a model takes and gives: tuples, dicts, dataclasses, packed
  sequences
- `op_names`: what operations are called: torch's inner names turned into the ones that users write
- `op_tape`: one forward, op by op: what is kept of each result, in which module it was made and on which
  line
- `plain_state`: state that no `state_dict` knows: plain tensors and arrays in attributes, and generators
  of one's own
- `replaced_inputs`: other inputs for the models while the rest of the step stays as it is
- `sample_exhibits`: samples of a batch as a person can look at them: pictures, text, waves or rows of
  numbers
- `sample_fields`: the fields of a sample, and what became of each in a batch
- `sample_labels`: what the samples are labelled with, as far as one label (or row of numbers) goes with
  each sample
- `sample_pool`: more samples than training has seen so far: drawn from the dataset, in the form of the
  step's batches
- `step_batch`: what one training step reads: its tensors by role, to be cut, joined and replaced
- `subject`: what an experiment is made on: the user's models, step, optimizer and data, as they were at
  first
- `time_limit`: time limits for what runs the user's code again, and why something can't be tried at all
- `undisturbed`: running the user's code a second time without the program noticing
- `users_step/`: the user's own training step as a function that can be called again
"""
