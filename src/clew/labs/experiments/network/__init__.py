"""Experiments on the forward and backward of a network.

Enter at the experiment's file. May import: records, measure, hooks, labs.experiments,
labs.experiments.tools, labs.network, labs.snapshot.

- `batch_independence`: `batch-leak`: does one sample's output depend on the other samples in its batch?
- `finite_differences`: `gradient-mismatch`: does backward() compute the gradient of the loss? Checks
  against finite differences in float64
- `future_inputs`: `future-leak`: does a causal model's output at one position depend on later inputs?
- `loss_minimum`: `loss-prefers-wrong`: is the loss lowest at the correct prediction? Calls the user's loss
  with replaced model outputs
- `meta_forward`: `device-literal`: does a forward create tensors with a fixed device or dtype? Runs it on
  the meta device and in float64
- `module_contract`: `custom-layer-broken`: does each user-defined module behave as an nn.Module must?
  Tests each one alone
- `other_batch_sizes`: `dimension-mixup`: does the model mix up dimensions? Tries other batch sizes, and
  the same samples in another order
- `padding_influence`: `mask-inverted`: does the model read tokens or padding? Adds noise to the embeddings
  of each and measures the output
- `repeated_step`: `nondeterministic-step`: does the same step give the same result twice from the same
  state and random seed?
- `swapped_inputs`: `input-ignored`: does the model use its input? Trains it briefly, then swaps in the
  inputs of other samples
"""
