"""What is collected of layers: activations, parameters, histograms, structure.

Enter at `activations.py`. May import: records, measure, hooks.entry.

- `activation_functions`: calls of activation functions inside a training forward, such as
  `F.relu(self.fc1(x))`
- `activation_origin`: the activation that a tensor came out of, read from the names in its autograd graph
- `activations`: activation statistics: outputs of layers and activation functions in a sampled training
  forward
- `attention_masks`: attention and pooling masks: which keys they hide, compared with which tokens are
  padding
- `identical_units`: identical units: units of a layer whose weights are copies of one another
- `layer_flow`: layer flow: which layer's output goes into which layer, read from any graph of a forward
- `layer_histograms`: histograms of gradients, weights and activations, on a few of the sampled steps
- `layer_structure`: layer structure of a model in training, read from the autograd graph
- `loss_graph`: which parameters the loss depends on, and which layers ran on the way to it
- `output_functions`: function calls inside a sampled forward that concern outputs: sampling noise and
  attention masks
- `parameter_stats`: parameter statistics around a sampled update: gradients, weights, and what changed
- `pending_rows`: rows of a sampled step, written when the step ends or dropped if it was not a training
  step
- `pretrained_statistics`: running statistics of pretrained weights, compared with the data that arrives
  at their first BatchNorm
- `shape_printer`: shape printer for `--print-shapes`: input and output shapes of every layer, printed
  when they change
- `step_matrix`: step matrix: gathers a step's statistics, with one row per layer or parameter
- `trained_models`: the models that a program trains: root modules, and the names of modules and
  parameters
- `weight_ties`: weight ties: weights that two layers share, and whether they still do; partly loaded
  checkpoints
"""
