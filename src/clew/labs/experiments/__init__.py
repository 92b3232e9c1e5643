"""Short experiments on a snapshot; checks judge what they find.

Enter at `run.py`, which runs those of `experiment_list.py`. May import: records, hooks, labs.snapshot,
labs.network.

- `base`: the base class of all experiments: a question, and one method that tries it and returns plain
  numbers
- `experiment_list`: the list of all experiments, in the order they run: cheap and informative ones first
- `fix_trials`: tries the fixes of the findings, one after the other, within a time limit
- `run`: runs the experiments on a subject one after the other, within one time limit, and records the
  results
- `user_experiments`: the user's own experiments: registered in the process or installed as a package
- `data/`: experiments on samples, labels and loaders
- `learning/`: experiments that train for a few steps
- `network/`: experiments on the forward and backward of a network
- `tools/`: what several experiments use
"""
