"""The step machine: which step it is, how closely to look, and what is recorded of it.

Enter at `watcher.py`. May import: records, measure, hooks.entry, the collectors.

- `forward_calls`: forwards of models: which are training, which of them are measured, and what runs
  inside them
- `full_recorder`: the full recorder: measures sampled steps, and understands every kind of program
- `grad_scaler`: steps that a `GradScaler` skips
- `light_recorder`: the light recorder: light steps, those between samples, noted in a few words and
  written many at once
- `light_rows`: what the notes of light steps mean: worked out for many steps at once, in the words of
  sampled ones
- `loop_collectors`: what is collected about the training loop as a whole: one object that the watcher
  tells
- `native_steps`: light steps that the library notes: one model on one batch, one loss, one optimizer
- `nonfinite_alarm`: the alarm: a loss or gradient is not finite. What else is not, while everything is
  still there?
- `optimizer_cycle`: when a step of the program ends, if it has several optimizers
- `pause`: looking away for a while: what runs then is not the user's training
- `recorder`: what happens in a training step: the events that seams report, and whoever records them
- `replay_inputs`: what is held of the step that is running, so that it can be run again after an alarm
- `running_updates`: steps of optimizers that are running now: one may call another, or itself, and one
  may have raised
- `sampling_budget`: when to look closely: sampling that keeps to a share of the step time
- `step_clock`: the clock of a run: which step it is, where its time went, and the row written at its end
- `step_machine`: the step machine: who records the step that is open, and how closely
- `step_pattern`: the order of events within a step, as a short string that repeats from step to step
- `train_modes`: in which mode models run, and who put them into it
- `watcher`: the state of an attached program: what is known of it, and everyone who collects more
"""
