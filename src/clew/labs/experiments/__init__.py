"""Short experiments on a snapshot; checks judge what they find.

Enter at `run.py`, which runs those of `experiment_list.py`. May import: records, measure, hooks,
labs.network, labs.snapshot.

- `base`: the base class of all experiments: a question, and one method that tries it and returns plain
  numbers
- `experiment_list`: the list of all experiments: Clew's own, cheap and informative ones first, and those
  of the user
- `fix_experiments`: tries the fixes of the findings, one after the other, within a time limit
- `fixes`: the fixes that can be tried without the user, and what each one changes in the training loop
- `run`: runs the experiments on a subject one after the other, within one time limit, and records the
  results
- `data/`: experiments on samples, labels and loaders
- `learning/`: experiments that train for a few steps
- `network/`: experiments on the forward and backward of a network
- `tools/`: what several experiments use
"""
