"""What is collected of layers: activations, parameters, histograms, structure.

Enter at `activations.py`. May import: records, measure, hooks.entry.

- `activation_functions`: sees the activation functions that are called inside a training forward:
  `F.relu(self.fc1(x))`
- `activation_origin`: what made a tensor: the activation it came out of, read from the names in its
  autograd graph
- `activations`: statistics of what layers and activation functions put out in a training forward that is
  looked at
- `attention_masks`: which keys an attention (or a pooling) may see, against which tokens are padding
- `identical_units`: units that are copies of one another
- `layer_flow`: how layers hang together: what one hands to the next, told from any graph of what ran
- `layer_histograms`: histograms of gradients, weights and activations, on a few of the sampled steps
- `layer_structure`: how the layers of a model hang together in training: what the autograd graph has of
  it
- `loss_graph`: which parameters the loss really depends on, and which layers ran on the way to it
- `output_functions`: functions that are called inside a sampled forward and that tell something about
  outputs
- `parameter_stats`: statistics of parameters around an update that is looked at: gradients, weights, and
  what changed
- `pending_rows`: rows of a sampled step that are written when the step ends, or dropped if it turns out
  to be none
- `pretrained_statistics`: loaded weights carry what they were trained on: the running statistics of their
  first BatchNorm
- `shape_printer`: `--print-shapes`: what goes into every layer and comes out, once, and again only when
  it changes
- `step_matrix`: the matrix that a step's statistics are gathered in: a row for each layer, or for each
  parameter
- `trained_models`: the models that a program trains: which modules are roots, and what everything is
  called
- `weight_ties`: weights that two layers share, and whether they still do; checkpoints that were loaded in
  part
"""
