"""From a NaN to the operation that made it: one step run again with every operation checked.

Enter at `replay_alarm.py`. May import: records, measure, hooks, labs.snapshot.

- `bad_elements`: which elements and samples are responsible for a non-finite result
- `culprits`: from the events of a microscope to the one that is to blame, described for a person
- `layer_lens`: the coarse lens: only what goes in and out of modules is checked, at a fraction of the
  cost
- `loss_gradients`: the gradients of a loss, without leaving any of them behind
- `microscope`: every operation of a step, forward and backward, checked as it runs
- `nan_reasons`: why an operation gives NaN or infinity, in a plain sentence, and what people do about it
- `numerics_report`: every operation or layer checked on purpose, and the report of what was not finite
- `numerics_window`: tracing numerics from one step to another: what is found is recorded
- `replay_alarm`: from a sentinel's alarm to a culprit: holds the step, runs it again, records what was
  found
- `replayed_calls`: the models of a replay are called as they were: with the held arguments and random
  numbers
- `step_replay`: A step run again with every operation checked, before its parameters change
- `tensor_provenance`: did a tensor come into the step as data, or did the program compute it, before what
  is run again?
- `repro/`: a step that went wrong, saved to a folder that runs on its own
"""
