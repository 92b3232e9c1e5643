"""Samples and batches as a person can look at them.

Enter at `loader_view.py`. May import: records, hooks, labs.snapshot, labs.loaders.

- `loader_view`: A pipeline as it is shown: samples, the same samples as the model gets them, and what
  differs
- `sample_reader`: how a dataset answers when the same sample is read again: the same, by chance, or
  changed by reading
- `stage_path`: one sample through every stage: what each was given, what it made of it, and how long it
  took
- `value_view`: any value of a pipeline as a person can look at it: what it is, its range, and a picture,
  text or wave
"""
