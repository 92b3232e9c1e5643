"""The step machine: which step it is, whether it is sampled, and what is recorded of it.

Enter at `step_machine.py`. May import: records, measure, hooks.collect_layers, hooks.collect_loop,
hooks.entry.

- `forward_calls`: forward calls of models: their modes, which are training, which are measured, and the
  modules inside
- `full_recorder`: the full recorder: measures sampled steps, and handles every kind of program
- `grad_scaler`: steps that a `GradScaler` skips, and when there are too many of them
- `light_recorder`: the light recorder: notes the steps between samples in a few tuples, and writes many
  steps at once
- `light_rows`: turns the notes of light steps into rows, many steps at once, with the same signals as
  sampled steps
- `native_steps`: light steps noted by the compiled library: one model on one batch, one loss, one
  optimizer
- `nonfinite_alarm`: alarm for a non-finite loss or gradient: records what else is not finite while it can
  still be read
- `optimizer_steps`: optimizer steps: which one ends a training step, and which are running now
- `recorder`: the recorder interface: the events of a training step that seams report
- `replay_inputs`: inputs of the current step, kept so that the step can be replayed after an alarm
- `sampling_budget`: sampling budget: decides which steps are sampled, within a share of the step time
- `step_clock`: step clock: number, time and events of the current step, and the row written at its end
- `step_machine`: the step machine: which recorder records the open step, and whether the step is sampled
- `watcher`: the state of an attached program: its models and optimizers, and all collectors
"""
