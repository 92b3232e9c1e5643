"""Experiments on the forward and backward of a network.

Enter at the experiment's file. May import: as labs.experiments.

- `batch_independence`: does one sample's output depend on the other samples of its batch?
- `finite_differences`: is what backward() computes the gradient of the loss? Against finite differences,
  in double precision
- `future_inputs`: does a causal model's output at one place depend on inputs after it?
- `loss_minimum`: is the loss lowest where the prediction is right? The output is replaced, the loss is
  the program's own
- `meta_forward`: does a forward make tensors on a fixed device or of a fixed type? On the meta device,
  and in float64
- `module_contract`: does each module that the user wrote hold what a module must hold, tried alone?
- `other_batch_sizes`: does the model tell the dimensions apart? Other batch sizes, and the same samples
  in another order
- `padding_influence`: does the model read the words, or the padding? What it reads of each is shaken, and
  the output watched
- `repeated_step`: does the same step from the same state and random numbers give the same twice?
- `swapped_inputs`: does the model make use of its input? Trained briefly, it is given the inputs of other
  samples
"""
