"""Typed readings of a run that several checks share.

Enter at whichever file has the thing that a check reads. May import: records, checks.

- `chance_loss`: the loss of a model that knows only how often each target occurs
- `data_feed`: the data that the models of a run got: loaders, evaluation sources, and labels
- `experiment_outcome`: reads the results of an experiment defensively: a run may come from another
  version of Clew
- `gradient_depth`: gradients of the weights along the depth of a model, relative to the weights
  themselves
- `hidden_layers`: hidden layers, and whether the training that they are part of made progress
- `label_order`: the order of the labels: mixed, sorted, or one class per batch
- `layer_pairs`: the `structure` fact as the checks read it: which layer passes its output to which
- `loader_measurements`: what `clew data` measured about a program's loaders, as the speed checks read it
- `loop_facts`: reads the facts about the training loop and the graph, as defensively as `facts` does
- `loss_inputs`: loss calls as the checks see them: their inputs, and what produced those
- `loss_trend`: trends of losses and learning rates, for the checks that look at a whole training
- `metric_names`: what the name of a logged metric says about it
- `nan_culprit`: the fact `culprit`: which operation produced the first NaN or infinity, as seen in a
  replay of the step
- `number_formats`: what the 16-bit number formats can hold, and which layers of a run compute in them
- `parameter_holders`: naming many parameters by the few modules that hold them
- `recorded_facts`: reads the recorded facts defensively: a field may be missing or of another type
- `speed_gains`: what the speed checks share: the parts of a step in seconds, and the gain from a saving
- `survey_facts`: what `clew data` found in the datasets, as the checks read it
- `rates/`: readings of learning rates, updates and losses that the checks of rates share
"""
