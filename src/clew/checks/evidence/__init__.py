"""Typed readings of a run that several checks share.

Enter at whichever file has the thing that a check reads. May import: records, checks.

- `chance_loss`: the loss that a model has which knows nothing but how often each target occurs
- `data_feed`: what fed the models of a run: loaders, evaluation sources, and the labels that came along
- `experiment_outcome`: reading what an experiment found, with care: a run may come from another version
  of Clew
- `experiment_site`: where an experiment saw something: the module, operation and line that it recorded
- `gradient_depth`: gradients of the weights along the depth of a model, relative to the weights
  themselves
- `hidden_layers`: hidden layers and what became of the training that they are part of
- `label_order`: the order in which labels come: mixed, sorted, or one class a batch
- `layer_pairs`: the `structure` fact as the checks read it: what one layer hands to the next
- `list_tensors`: tensors that a program builds from lists, as the `profile.tensors` facts have them
- `loader_measurements`: what `clew data` measured of a program's loaders, as checks of speed read it
- `loop_facts`: the facts about the training loop and the graph, read with care like those of `facts`
- `loss_course`: where the training loss went: falling, flat, or away
- `loss_inputs`: loss calls as the checks see them: what was given to them, and what made it
- `loss_trend`: where losses and learning rates are heading, for the checks that judge a whole course
- `metric_names`: what the name of a logged metric says about it
- `nan_culprit`: the fact `culprit`: which operation made the first NaN or infinity, as a replay of the
  step saw it
- `never_trained`: parameters that should have got a gradient and never did
- `number_formats`: what the 16-bit number formats can hold, and which layers of a run compute in them
- `other_ranks`: the loss of another process that was NaN first: gradients are averaged, so that all of
  them break
- `parameter_holders`: naming many parameters by the few modules that hold them
- `parameter_shapes`: how large parameters are, from the `model` fact
- `recorded_facts`: what the recorded facts say, read with care: a field may be missing or of another type
- `speed_gains`: what checks of speed share: a step's parts in seconds, and what a saving is worth
- `survey_facts`: what `clew data` found when it looked through the datasets, as the checks read it
- `rates/`: what the checks of learning rates read
"""
