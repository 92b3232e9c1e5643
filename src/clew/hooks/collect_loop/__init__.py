"""What is collected of the training loop: losses, batches, evaluation, optimizers, schedulers.

Enter at `loss_calls.py`. May import: records, measure, hooks.collect_layers, hooks.entry.

- `batch_samples`: samples of a batch: content hashes, labels, what is constant, and whether labels
  depend on inputs
- `batch_stats`: batch statistics: inputs and targets of a sampled step
- `dataset_contents`: contents of a loader's dataset, read from outside: draws no sample and runs none of
  its code
- `evaluation_sections`: evaluation sections: the forwards without gradients between two training steps,
  usually a validation
- `seen_samples`: samples that models get: repeats, copies, label conflicts, and training samples in
  evaluation
- `loss_calls`: calls of torch's loss functions: their arguments and results; and losses written by hand
- `loss_terms`: loss terms: the share of each loss call in the loss that `backward()` is called on
- `model_outputs`: model outputs as they go into the loss, on sampled steps: their activation, spread,
  range and accuracy
- `optimizer_use`: optimizer use: how often each optimizer stepped, and whether it used the gradients of
  each backward
- `optimizers`: the optimizers of a program: what they update, and whether their gradients are clean and
  finite
- `parameter_inventory`: parameter inventory: which parameters are trained, by which optimizer, which are
  still at init, and layers whose units are copies of one another
- `schedulers`: learning-rate schedulers: their optimizers, how often they were stepped, and whether too
  early
"""
