"""Experiments on samples, labels and loaders.

Enter at the experiment's file. May import: records, measure, labs.experiments, labs.experiments.tools,
labs.snapshot.

- `augmentation_off`: `excessive-augmentation`: does augmentation leave anything to learn? Short trainings
  with the random transforms on and off
- `label_pairs`: `labels-misaligned`: do labels belong to their inputs? Compares pairs from training with
  pairs from the dataset
- `loader_against_dataset`: `loader-corrupts-data`: does the loader deliver what the dataset returns? Reads
  the same indices both ways, on two copies
- `permuted_labels`: `no-signal`: do the inputs predict the labels? Fits cheap learners to the real labels
  and to permuted ones
- `reread_samples`: `dataset-mutates`: does a sample stay the same? Reads every index several times with
  the same random seed
- `suspect_labels`: `label-noise`: which labels look wrong? Finds samples for which cheap learners
  confidently predict another label
"""
