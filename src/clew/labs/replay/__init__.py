"""From a NaN to the operation that produced it: one step run again with every operation checked.

Enter at `replay_alarm.py`. May import: records, measure, hooks, labs.snapshot.

- `bad_elements`: the elements and samples that are responsible for a non-finite result
- `culprits`: picks the one event to blame from those of a microscope, and describes it for a person
- `layer_lens`: the coarse lens: checks only the inputs and outputs of modules, at a fraction of the cost
- `loss_gradients`: computes the gradients of a loss without storing them in `.grad`
- `microscope`: checks every operation of a step, forward and backward, as it runs
- `nan_reasons`: why an operation gives NaN or infinity, in one sentence, with a fix
- `numerics_report`: checks every operation or layer on request, in a `with` block or in some steps of a run,
  and reports what was not finite
- `replay_alarm`: from a sentinel's alarm to a culprit: keeps the step, replays it and records the result
- `step_replay`: replays a step with every operation checked, before its parameters change
- `tensor_provenance`: where the tensors of a replayed step come from: the user's names for them, and what
  computed them
- `repro/`: a step that went wrong, saved to a folder that runs on its own
"""
