"""What is collected of layers: activations, parameters, histograms, structure.

Enter at `activations.py`. May import: records, measure, hooks.entry.

- `activation_functions`: calls of activation functions inside a training forward, such as
  `F.relu(self.fc1(x))`
- `activations`: activation statistics: outputs of layers and activation functions in a sampled training
  forward
- `attention_masks`: attention and pooling masks: which keys they hide, compared with which tokens are
  padding
- `layer_flow`: layer flow: which layer's output goes into which layer, read from any graph of a forward
- `layer_histograms`: histograms of gradients, weights and activations, on a few of the sampled steps
- `layer_structure`: layer structure of a model in training, read from the autograd graph
- `loss_graph`: which parameters the loss depends on, and which layers ran on the way to it
- `noise_and_mask_calls`: calls of functions inside a sampled forward that draw noise or apply attention masks
- `parameter_stats`: parameter statistics around a sampled update: gradients, weights, and what changed
- `pretrained_statistics`: running statistics of pretrained weights, compared with the data that arrives
  at their first BatchNorm
- `shape_printer`: shape printer for `--print-shapes`: input and output shapes of every layer, printed
  when they change
- `step_rows`: rows of a sampled step: one per layer or parameter in a matrix, or one per site
- `trained_models`: the models that a program trains: root modules, and the names of modules and
  parameters
- `weight_ties`: weight ties: weights that two layers share, and whether they still do; partly loaded
  checkpoints
"""
