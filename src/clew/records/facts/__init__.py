"""One frozen dataclass for each kind of fact. Enter at `fact_register`, which lists them all.

- `fact`: the base class: reading that never raises, and writing
- `fact_register`: every kind by its name in the log
- `model_facts`: a model, its parameters, what the loss depends on
- `step_facts`: optimizers, schedulers, modes, loaders, the order of events
- `loss_facts`: loss calls, their inputs, labels and answers
- `nan_facts`: values that are not finite, and what made them
- `run_facts`: settings, versions, the user's own checks, trials of fixes
- `experiment_facts`: what experiments found
- `profile_facts`: habits that cost time
- `loader_facts`: how fast a loader is
- `document_facts`: profiles, surveys and trials, whose content has dataclasses of its own

It imports only `records`.
"""
