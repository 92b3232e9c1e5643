"""What a program does beside computing that costs time.

Enter at `habit_observer.py`. May import: records, hooks, labs.profiler.

- `built_tensors`: calls of `torch.tensor` on lists during a profile: the time they take, and the time
  they need to take
- `dataset_storage`: how datasets store their data: as Python lists of numbers, or as arrays wider than
  the network needs
- `deliveries`: the batches that loaders deliver during a profile: how long each takes, its size and
  dtypes
- `graphs_in_evaluation`: evaluation that builds graphs: eval-mode forwards with gradients enabled and no
  backward
- `habit_observer`: observes what costs a program time besides computing: loading, building tensors,
  evaluating
"""
