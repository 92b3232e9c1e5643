"""One forward, op by op and module by module.

Enter at `op_tracer.py`. May import: records, hooks, labs.snapshot, labs.network.

- `dtype_rules`: what torch refuses when it computes and lets pass on fake tensors: types that do not go
  together
- `flops`: FLOPs of one op, by torch's own counter; a multiply-add is two
- `layer_lines`: the line on which a layer was made, read from the source of the class that holds it
- `module_kinds`: which modules are alike: same type, settings and shapes, all the way down
- `op_tracer`: one forward, watched: every op under a dispatch mode, every module call through global
  hooks
- `repeated_layers`: layers that stand more than once are traced once
- `sibling_groups`: equal siblings in a row are drawn once: `layers.0 ×12`
- `traced_forward`: run a forward to look at it: without computing anything if that can be, else for real
- `value_statistics`: median, mean, spread and range of a tensor's values, without touching what runs
  around it
"""
