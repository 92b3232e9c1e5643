"""What users run on request: their code runs again on a snapshot, and the results are recorded as facts.

Enter at the lab: experiments, loaders, network, profiler or replay. May import: records, measure, hooks.

- `experiments/`: short experiments on a snapshot; checks judge what they find
- `loaders/`: the path of a sample from the dataset to the model: shown, measured and surveyed
- `network/`: a network seen without training it: summary, graph, visit, shapes
- `profiler/`: where the time and memory of training go
- `replay/`: from a NaN to the operation that made it: one step run again with every operation checked
- `snapshot/`: running the user's code again without leaving a trace: state, random numbers, batches,
  datasets
"""
