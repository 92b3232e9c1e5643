"""A network seen without training it: summary, graph, visit, shapes.

Enter at `network_summary.py`. May import: records, measure, hooks, labs.snapshot.

- `device_literals`: finds tensors that stay on the CPU when the model moves; uses the meta device, so no
  GPU is needed
- `first_weights`: the initial weights: their scale, and layers that pass no signal
- `model_locator`: finds a model by the name the user gives: `net.py:Net`, `net.py:build(depth=3)`,
  `package.net:model`
- `network_facts`: the facts that checks read about a traced network, in the vocabulary of recorded runs
  (docs/signals.md)
- `network_graph`: builds the graph of one real forward: every op, in its module, with the tensors between
  them
- `network_inputs`: input tensors for a network: given as tensors, read from files, or created from shapes
- `network_summary`: summary of a network: its modules, their outputs, and where parameters, FLOPs and
  memory are
- `tensor_description`: readable tensor descriptions: shape, statistics and problems instead of the first
  few numbers
- `tensor_info`: describes tensors without their values: shape, dtype, device, bytes
- `traced_structure`: how layers are connected in a traced forward: the `structure` fact without training
- `visitor`: `clew.visit`: visits every op, module call or autograd node of a network, in forward order
- `shape_errors/`: why a forward failed: what was expected, what was given, and the fix
- `sizes/`: sizes with names: `batch`, `height//2`
- `trace/`: one forward, op by op and module by module
"""
