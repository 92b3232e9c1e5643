"""The user's own training step as a function that can be called again.

Enter at `step_capture.py`. May import: records, measure, hooks, labs.snapshot.

- `call_arguments`: what is handed over in a call, read as the user means it: what goes into the model,
  what into the loss
- `loss_origin`: where a loss was made: in the function that calls `backward()`, or in one that gave it
  the loss
- `loss_recipe`: the statements of the user's own that made the loss, taken from the frame that called
  `backward()`
- `model_calls`: calls of the models as the user's step made them, to be made again with other inputs
- `program_slice`: which statements a value depends on, and from which of them on it can be computed again
- `purity`: may a piece of the user's code be run a second time? Only if it does nothing but compute
- `replay_lines`: which line of the user's source an operation comes from, up to where a replay began
- `sample_dims`: along which dimension each tensor of a batch holds the samples
- `step_capture`: from a running program to a subject: its first training steps, their data and how they
  made the loss
- `step_function`: the user's step, from model to loss, as something that can be run again on other data
- `step_slots`: what the user's step reads: the names in it that stand for data, taken anew for every
  batch
- `subject_from_call`: A subject from what the user hands over: a model, a loss function, and a batch or a
  loader
- `tensor_roles`: which tensors of a batch go into a model and which into the loss: followed through one
  run of the step
"""
