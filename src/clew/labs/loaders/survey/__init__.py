"""A whole dataset read through: copies, outliers, labels, corrupt samples.

Enter at `split_survey.py`. May import: records, hooks, labs.snapshot, labs.loaders.

- `content_hash`: A sample as a few bytes: a hash of its content, and a sketch by which near copies are
  found
- `copied_samples`: what the hashes and sketches of samples say about copies, within a split and between
  two
- `dataset_labels`: the labels of a dataset: how often each comes, and whether they come in an order
- `field_tallies`: what is counted of one field while the samples go by: a few numbers, however many there
  are
- `main_input`: single samples weighed: which field counts, how large it is, whether a copy of it would be
  an accident
- `near_copies`: copies among samples: exact ones by their hashes, near ones by sketches that are
  confirmed
- `outliers`: samples unlike all others: few, with a gap between them and the rest. A long tail is no
  fault
- `split_survey`: the datasets of a program looked through, split by split, and compared with each other
- `survey_exhibits`: the samples that a survey speaks of, to be looked at: a pair of copies, an outlier
- `survey_pass`: one split read through: every sample once, of which hashes, sketches and counts are kept
"""
