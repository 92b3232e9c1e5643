"""Experiments on samples, labels and loaders.

Enter at the experiment's file. May import: as labs.experiments.

- `augmentation_off`: does augmentation leave anything to learn? Short trainings with the random
  transforms on and off
- `label_pairs`: do labels belong to their inputs? Compares pairs from training with pairs from the
  dataset
- `loader_against_dataset`: does the loader deliver what the dataset returns? Reads the same indices both
  ways, on two copies
- `permuted_labels`: do the inputs predict the labels? Fits cheap learners to the real labels and to
  permuted ones
- `reread_samples`: does a sample stay the same? Reads every index several times with the same random seed
- `suspect_labels`: which labels look wrong? Finds samples for which cheap learners confidently predict
  another label
"""
