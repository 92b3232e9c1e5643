"""One frozen dataclass for each kind of fact: what collectors write and checks read.

Enter at `fact.py`. May import: records.

- `data_experiment_facts`: facts of the experiments on the data
- `document_facts`: facts whose content has its own dataclasses, also written to files: profiles, surveys,
  experiments
- `experiment_facts`: what the facts of all experiments have in common; each experiment's own fact adds its
  numbers
- `fact`: base class of facts: a fact is something recorded once in a run, with one frozen dataclass per
  kind
- `learning_experiment_facts`: facts of the experiments on how the network learns
- `loader_facts`: facts of `clew data` about one loader: how fast it is, and what that depends on
- `loss_facts`: facts about loss calls: their inputs, where they fail, and how predictions compare with
  labels
- `model_facts`: facts about a model: its layers and parameters, what the loss depends on, how layers
  follow each other
- `nan_facts`: facts about non-finite values: the alarm, what the replay of the step found, and the repro
- `network_experiment_facts`: facts of the experiments on what the network computes
- `profile_facts`: facts of `clew profile`: patterns in a program that cost time. For the profile see
  `step_costs.Profile`
- `run_facts`: facts about the run: settings, versions, the user's own checks, proofs of fixes, failures
  inside Clew
- `step_facts`: facts about the training loop: optimizers, schedulers, modes, loaders, the order of events
"""
