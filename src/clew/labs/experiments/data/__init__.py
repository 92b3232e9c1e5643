"""Experiments on samples, labels and loaders.

Enter at the experiment's file. May import: as labs.experiments.

- `augmentation_off`: does augmentation leave something to learn? Short trainings with the random
  transforms on and off
- `label_pairs`: do the labels belong to the inputs? Pairs as training gets them against those that the
  dataset returns
- `loader_against_dataset`: does the loader deliver what the dataset returns? The same indices both ways,
  on two copies
- `permuted_labels`: do the inputs say anything about the labels? Cheap learners try, with the real labels
  and permuted ones
- `reread_samples`: does a sample stay what it is? Every index is read several times under the same random
  numbers
- `suspect_labels`: which labels look wrong? Cheap learners predict each sample from others, and are sure
  of another label
"""
