"""Samples and batches as a person can look at them.

Enter at `loader_view.py`. May import: records, hooks, labs.snapshot, labs.loaders.

- `loader_view`: the view of one loader: samples, the same samples as the model gets them, and the
  differences
- `sample_reader`: does a dataset return the same sample again: always, at random, or changed by being
  read?
- `stage_path`: follows one sample through every stage: its input, its output and how long it took
- `value_view`: describes any value for display: its type and range, and an image, text or waveform
"""
