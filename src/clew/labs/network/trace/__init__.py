"""One forward, op by op and module by module.

Enter at `op_tracer.py`. May import: records, measure, hooks, labs.network, labs.snapshot.

- `dtype_rules`: dtype combinations that torch rejects for real but accepts on fake tensors
- `flops`: FLOPs of one op, from torch's own counter; a multiply-add counts as two
- `layer_lines`: the line on which a layer was created, found in the source of the class that owns it
- `module_kinds`: which modules are identical: same type, settings and shapes, including all submodules
- `op_tracer`: traces one forward: every op through a dispatch mode, every module call through global
  hooks
- `repeated_layers`: traces repeated layers once and reuses the record
- `sibling_groups`: groups consecutive identical siblings, so that they are drawn once: `layers.0 ×12`
- `traced_forward`: runs a forward to trace it: on fake tensors if possible, else for real
"""
