"""The public functions of `clew`, one file each; `clew/__init__.py` re-exports them.

Enter at the file that has the function's name. May import: records, store, hooks, checks, labs, render,
session.

- `attach`: Clew from Python: `with clew.attach(model, optimizer):`, and what a program can add to its run
- `data`: `clew.data`: shows, measures and checks what a loader delivers, on objects that you pass
- `describe`: `clew.describe` and `clew.describe_tensors`: a tensor in one line, with shape, range and
  distribution
- `examine`: `clew.examine`: the experiments of `clew check` on objects that you pass
- `extend`: `clew.extend`: every place where Clew can be extended, one function each
- `faster`: `clew.try_faster` and `clew.batch_sizes`: `clew profile --try` and `--batch-sizes` on objects
  that you pass
- `forward_errors`: a forward that fails inside a public function: its exception has the whole explanation
- `graph`: `clew.graph`: one forward as a graph of ops, in the modules that they ran in
- `open_run`: `clew.open_run`: a recorded run that also shows itself in a notebook
- `profile`: `with clew.profile() as p:` around the steps of a program, with or without a recorded run
- `pytest_plugin`: for pytest: the experiments of `clew.examine`, each as a separate result
- `summary`: `clew.summary`: a network as a table, and what the checks find in it before training
- `trace_numerics`: `clew.trace_numerics`: checks a block of code for NaN and infinity, with or without
  `clew run`
- `visit`: `clew.visit`: every op, module call or autograd node of a network, in forward order
"""
