"""The step machine: which step it is, how closely to look, and what is recorded of it.

Enter at `watcher.py`. May import: records, measure, hooks.entry, the collectors.

- `deferred_values`: numbers that are still on an accelerator
- `forward_calls`: forwards of models: which are training, which of them are measured, and what runs
  inside them
- `light_recorder`: plain steps, the ones between samples: noted in a few words as they happen, written in
  batches
- `light_rows`: what the notes of plain steps mean: worked out for many steps at once, in the words of
  other steps
- `loop_collectors`: what is collected about the training loop as a whole: one object that the watcher
  tells
- `native_steps`: usual steps: one model on one batch, one loss, one optimizer, noted by the library and
  not by Python
- `nonfinite_alarm`: the alarm: a loss or gradient is not finite. What else is not, while everything is
  still there?
- `optimizer_cycle`: when a step of the program ends, if it has several optimizers
- `pause`: looking away for a while: what runs then is not the user's training
- `pending_rows`: rows of a sampled step that are written when the step ends, or dropped if it turns out
  to be none
- `replay_inputs`: what is held of the step that is running, so that it can be run again after an alarm
- `sampling_budget`: when to look closely: sampling that keeps to a share of the step time
- `step_clock`: the clock of a run: which step it is, where its time went, and the row written at its end
- `step_pattern`: the order of events within a step, as a short string that repeats from step to step
- `trained_models`: the models that a program trains: which modules are roots, and what everything is
  called
- `watcher`: what a program's events mean: steps, phases, which steps to look at, and what to write
"""
