"""The way of a sample from the dataset to the model: shown, measured and surveyed.

Enter at `run.py`. May import: records, hooks, labs.snapshot.

- `dataset_stages`: the stations of a sample: datasets inside datasets, their methods, transforms and
  functions, and collate
- `failing_sample`: A loader's exception traced back to the sample: which index, in which stage, at which
  of the user's lines
- `field_values`: A sample taken apart into fields, each as an array or a text, whatever a dataset may
  return
- `loader_copy`: reading a pipeline without the program noticing: on a copy if there can be one, else all
  is put back
- `pipeline`: A data pipeline: from the dataset through transforms and collate to the batches that the
  model gets
- `program_loaders`: the pipelines of a running program: which loaders it makes and iterates, and what its
  models get
- `run`: what is asked of loaders, in order: look, measure and survey, within a time limit
- `stage_trace`: looking on while samples pass the stages: what went in, what came out, how long it took
- `token_decoder`: numbers back to words: a tokenizer or vocabulary that the dataset, collate or the
  script holds
- `user_errors`: errors of the user's own code, in a few words, and where in it they happened
- `workerless_loader`: loaders without workers: the same pipeline in one process, where a debugger and a
  traceback work
- `look/`: samples and batches as a person can look at them
- `speed/`: how fast a loader is, why, and what would be faster
- `survey/`: a whole dataset read through: copies, outliers, labels, corrupt samples
"""
