"""The user's own training step as a function that can be called again.

Enter at `step_capture.py`. May import: records, measure, hooks, labs.snapshot.

- `loss_origin`: finds where a loss was computed: in the function that calls `backward()`, or in one that
  passed it
- `loss_recipe`: the user's statements that computed the loss, taken from the frame that called
  `backward()`
- `model_calls`: the model calls of the user's step, to be repeated with other inputs
- `program_slice`: program slicing: the statements a value depends on, and where recomputing it can start
- `replay_lines`: the line of the user's source that an operation comes from, up to where a replay began
- `side_effects`: can a piece of the user's code be run a second time? Only if it does nothing but compute
- `step_capture`: captures a subject from a running program: its first steps, their data and how the loss
  is computed
- `step_function`: the user's step, from model to loss, as a function that can be run again on other data
- `step_slots`: the inputs of the user's step: the names in it that stand for data, replaced for every
  batch
- `subject_from_call`: builds a subject from what the user passes: a model, a loss function, and a batch
  or a loader
- `tensor_roles`: what each tensor of a batch is: input or target, and which of its dimensions is the
  batch dimension
"""
