"""Short experiments on a snapshot; checks judge what they find.

Enter at `run.py`, which runs those of `experiment_list.py`. May import: records, hooks, labs.snapshot,
labs.network.

- `base`: what an experiment is: a question, and one method that tries it and returns plain numbers
- `experiment_list`: the experiments there are, in the order in which they run: cheap and telling ones
  first
- `fix_trials`: the fixes of what was found, tried one after the other while there is time
- `run`: asks a subject one question after another, within one time limit, and records what came out
- `user_experiments`: experiments of the user's own: registered in the process, or installed with a
  package
- `data/`: experiments on samples, labels and loaders
- `learning/`: experiments that train for a few steps
- `network/`: experiments on the forward and backward of a network
- `tools/`: what several experiments use
"""
