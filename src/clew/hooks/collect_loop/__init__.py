"""What is collected of the training loop: losses, batches, evaluation, optimizers, schedulers.

Enter at `loss_calls.py`. May import: records, measure, hooks.entry.

- `batch_samples`: samples of a batch: content hashes, labels, and which samples or features are constant
- `batch_stats`: batch statistics: inputs and targets of a sampled step
- `dataset_contents`: contents of a loader's dataset, read from outside: draws no sample and runs none of
  its code
- `evaluation_batches`: evaluation batches: inputs, labels and predictions of the first batches of a
  section
- `evaluation_sections`: evaluation sections: forwards without gradients between two steps, and the mode
  of the model
- `fed_samples`: samples that models are fed: repeats, copies, label conflicts, and training samples in
  evaluation
- `gradient_use`: gradient use: whether an optimizer used the gradients of each backward, or they were
  cleared before
- `label_signal`: label signal: whether the labels depend on the inputs, from two cheap tests on the first
  samples
- `loss_calls`: calls of torch's loss functions: their arguments and results; and losses written by hand
- `loss_terms`: loss terms: the share of each loss call in the loss that `backward()` is called on
- `model_outputs`: model outputs as they go into the loss, on sampled steps: their spread, range and
  accuracy
- `optimizer_upkeep`: optimizer use: how often each optimizer stepped, and which models' parameters it has
- `optimizers`: the optimizers of a program: what they update, and whether their gradients are clean and
  finite
- `parameter_inventory`: parameter inventory: which parameters are trained, by which optimizer, and which
  are still at init
- `schedulers`: learning-rate schedulers: their optimizers, how often they were stepped, and whether too
  early
"""
