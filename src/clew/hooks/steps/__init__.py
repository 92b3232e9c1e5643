"""The step machine: which step it is, how closely to look, and what is recorded of it.

Enter at `step_machine.py`. May import: records, measure, hooks.entry, the collectors.

- `forward_calls`: forward calls of models: which are training, which are measured, and which modules run
  inside them
- `full_recorder`: the full recorder: measures sampled steps, and handles every kind of program
- `grad_scaler`: steps that a `GradScaler` skips, and when there are too many of them
- `light_recorder`: the light recorder: notes the steps between samples in a few tuples, and writes many
  steps at once
- `light_rows`: turns the notes of light steps into rows, many steps at once, with the same signals as
  sampled steps
- `loop_collectors`: collectors for the training loop as a whole, in one object that the watcher calls
- `native_steps`: light steps noted by the compiled library: one model on one batch, one loss, one
  optimizer
- `nonfinite_alarm`: alarm for a non-finite loss or gradient: records what else is not finite while it can
  still be read
- `optimizer_cycle`: which optimizer step ends a training step, in a program with several optimizers
- `pause`: pause recording while Clew itself runs the user's code
- `recorder`: the recorder interface: the events of a training step that seams report
- `replay_inputs`: inputs of the current step, kept so that the step can be replayed after an alarm
- `running_updates`: stack of optimizer steps that are running now: one may call another or itself, and
  one may have raised
- `sampling_budget`: sampling budget: decides which steps are sampled, within a share of the step time
- `step_clock`: step clock: the current step number, where its time went, and the row written at its end
- `step_machine`: the step machine: which recorder records the open step, and whether the step is sampled
- `step_pattern`: step pattern: the order of events within a step, as a short string that repeats from
  step to step
- `train_modes`: train and eval modes of models, and the lines that set them
- `watcher`: the state of an attached program: its models and optimizers, and all collectors
"""
