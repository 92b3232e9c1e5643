"""What a program does beside computing that costs time.

Enter at `habit_observer.py`. May import: records, hooks, labs.profiler.

- `built_tensors`: calls of `torch.tensor` on lists, in the windows of a profile: how long they take, and
  need to take
- `dataset_storage`: how datasets keep their data: Python lists of numbers, or arrays twice as wide as the
  network's
- `deliveries`: what loaders deliver in the windows of a profile: how long a batch takes, how large and of
  which types
- `graphs_in_evaluation`: evaluation that builds graphs: forwards in evaluation mode, with gradients, and
  no backward after them
- `habit_observer`: what a program does beside computing that costs time: how it loads, builds tensors and
  evaluates
"""
