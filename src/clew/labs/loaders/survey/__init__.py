"""A whole dataset read through: copies, outliers, labels, corrupt samples.

Enter at `split_survey.py`. May import: records, measure, hooks, labs.loaders, labs.snapshot.

- `content_hash`: hashes a sample's content, and sketches it in a few bytes so that near copies can be
  found
- `copied_samples`: copied samples within a split and between two splits, from their hashes and sketches
- `dataset_labels`: the labels of a dataset: how often each occurs, and whether they are sorted
- `field_tallies`: running counts for one field of a dataset, in constant memory
- `near_copies`: finds copies among samples: exact ones by hash, near ones by sketch, confirmed on the
  samples
- `outliers`: finds outliers: a few samples with a clear gap to the rest. A long tail is not a fault
- `sample_reader`: whether a dataset returns the same sample every time: yes, with random changes, or changed
  by reading
- `split_survey`: surveys the datasets of a program split by split, and compares the splits
- `survey_pass`: one pass over a split: reads every sample once and keeps hashes, sketches and counts
"""
