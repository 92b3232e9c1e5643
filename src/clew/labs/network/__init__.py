"""A network seen without training it: summary, graph, visit, shapes.

Enter at `network_summary.py`. May import: records, hooks, labs.snapshot.

- `device_literals`: A tensor that stays on the CPU wherever the model goes: found without a GPU, on the
  meta device
- `first_weights`: what the weights are before any training: their size, and layers that let nothing
  through
- `model_locator`: find a model by what the user calls it: `net.py:Net`, `net.py:build(depth=3)`,
  `package.net:model`
- `network_facts`: what checks read of a network that was looked at, in the words of a recorded run
  (docs/signals.md)
- `network_graph`: one graph from one real forward: every op, in the modules that it ran in, with the
  tensors between
- `network_inputs`: what to feed a network: tensors as they are, files, or nothing but shapes
- `network_summary`: what is in a network, what flows through it, where parameters, FLOPs and memory sit
- `tensor_description`: tensors that print themselves: what a person wants to know of one, instead of its
  first numbers
- `tensor_info`: tensors described without their values: shape, type, device, bytes
- `traced_structure`: how layers hang together in a traced forward: the `structure` fact without training
- `unread_parameters`: parameters that no op of a forward has read: the `graph` fact without training
- `visitor`: `clew.visit`: every op, module call or autograd node of a network, in forward order
- `shape_errors/`: why a forward failed: what was expected, what was given, and the fix
- `sizes/`: sizes with names: `batch`, `height//2`
- `trace/`: one forward, op by op and module by module
"""
