"""The public functions of `clew`, one file each; `clew/__init__.py` re-exports them.

Enter at the file that has the function's name. May import: everything below it: session, labs, render,
checks, store.

- `attach`: Clew from Python: `with clew.attach(model, optimizer):`, and what a program tells the run by
  itself
- `data`: `clew.data`: what a loader delivers, seen, measured and judged, on what is handed over in a call
- `describe`: `clew.describe` and `clew.describe_tensors`: what a person wants to know of a tensor
- `examine`: `clew.examine`: the pre-flight of `clew check`, on what is handed over in a call
- `extend`: `clew.extend`: every place where Clew can be extended, one function each
- `faster`: `clew.try_faster` and `clew.batch_sizes`: `clew profile --try` and `--batch-sizes` on what is
  handed over
- `forward_errors`: A forward that fails inside a public function: its exception carries the whole
  explanation
- `graph`: `clew.graph`: one forward as a graph of ops, in the modules that they ran in
- `open_run`: `clew.open_run`: a recorded run that also shows itself in a notebook
- `profile`: `with clew.profile() as p:` around the steps of a program, with or without a recorded run
- `pytest_plugin`: for pytest: the pre-flight of `clew.examine`, each experiment a result of its own
- `summary`: `clew.summary`: a network as a table, and what the checks say of it before anything is
  trained
- `trace_numerics`: `clew.trace_numerics`: trace on purpose, with or without `clew run`
- `visit`: `clew.visit`: every op, module call or autograd node of a network, in forward order
"""
