"""What several checks read from a run: losses, loaders, layers.

Enter at the file about the data that a check reads. May import: records, checks.run_view, checks.series,
checks.wording.

- `chance_loss`: the loss of a model that knows only how often each target occurs
- `data_feed`: the data that the models of a run got: loaders, evaluation sources, and labels
- `experiment_outcome`: results of an experiment, as several checks use them
- `gradient_depth`: gradients of the weights along the depth of a model, relative to the weights
  themselves
- `label_order`: the order of the labels: mixed, sorted, or one class per batch
- `layer_pairs`: hidden layers, and which layer passes its output to which
- `loader_measurements`: what `clew data` measured about a program's loaders, as the speed checks read it
- `loop_facts`: facts about the training loop and the autograd graph: the newest of each, and the order of
  events
- `loss_divergence`: how a loss goes away: far from its start, in a burst, or after a leap of the rate
- `loss_inputs`: loss calls: their inputs, and what produced those
- `loss_trend`: trends of losses and learning rates, for the checks that look at a whole training
- `metric_names`: logged metrics, and what their names say about them
- `nan_culprit`: the fact `culprit`: which operation produced the first NaN or infinity, as seen in a
  replay of the step
- `number_formats`: what the 16-bit number formats can hold, and which layers of a run compute in them
- `parameter_holders`: many parameters, named by the few modules that contain them
- `learning_rate_evidence`: how much a step changes the weights, and what experiments with other learning
  rates showed
- `speed_gains`: the parts of a step in seconds, the loaders at work in it, and the gain from saving time
- `survey_facts`: what `clew data` found in the datasets, as the checks read it
"""
