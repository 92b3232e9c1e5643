"""What is collected of the training loop: losses, batches, evaluation, optimizers, schedulers.

Enter at `loss_calls.py`. May import: records, measure, hooks.entry.

- `batch_samples`: what single samples of a batch look like: content hashes, and whether anything in them
  varies
- `batch_stats`: what the network is fed: statistics of inputs and targets of a sampled step
- `dataset_contents`: what a loader's dataset holds, looked at from outside: no sample is drawn, no code
  of it is run
- `evaluation_batches`: what is fed to a model in evaluation, and what it makes of it: the first batches
  of a section
- `evaluation_sections`: forwards without gradient: in which mode the model was, section by section
- `fed_samples`: what a program feeds its models, sample by sample: in training on sampled steps, in
  evaluation a little
- `gradient_use`: what becomes of the gradients of each backward: used by an optimizer, or cleared before
- `label_signal`: do the labels have anything to do with the inputs? Two cheap looks at the first samples
  of a run
- `loss_calls`: what goes into the loss: the calls of torch's loss functions, and losses written by hand
- `loss_terms`: what each loss call contributes to the loss that `backward()` is called on
- `model_outputs`: what a model's outputs look like where they meet the loss, on sampled steps
- `optimizer_upkeep`: which optimizers do their work: how often each stepped, and whose parameters they
  hold
- `optimizers`: the optimizers of a program: what they update, and whether the gradients they use are
  sound
- `parameter_inventory`: which parameters are trained, by whom, and which are still as they were
  initialised
- `schedulers`: learning-rate schedulers: whose they are, how often they were stepped, and whether too
  early
"""
