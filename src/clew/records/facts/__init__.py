"""One frozen dataclass for each kind of fact: what collectors write and checks read.

Enter at `fact.py`. May import: records.

- `document_facts`: facts whose content has its own dataclasses, as it is written to files too: profiles,
  surveys, trials
- `experiment_facts`: facts that experiments leave: one kind for each, with the same fields. Each says
  what its `data` holds
- `fact`: what a fact is: something known once in a run. There is one frozen dataclass for each kind
- `fact_register`: the register of facts: every kind that Clew records, in the order of the documentation
- `loader_facts`: facts of `clew data` about one loader: how fast it is, and what that depends on
- `loss_facts`: facts about loss calls: what they are given, where they fail, how answers and labels meet
- `model_facts`: facts about a model: its layers and parameters, what the loss depends on, how layers
  follow each other
- `nan_facts`: facts about values that are not finite: the alarm, what running the step again has found,
  the repro
- `profile_facts`: facts of `clew profile`: habits that cost time. The profile itself is
  `step_costs.Profile`
- `run_facts`: facts about the run: settings, versions, the user's own checks, trials of fixes, failures
  inside Clew
- `step_facts`: facts about the training loop: optimizers, schedulers, modes, loaders, the order of events
"""
