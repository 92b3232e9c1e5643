"""Why a forward failed: what was expected, what was given, and the fix.

Enter at `shape_error.py`. May import: records, measure, hooks, labs.network, labs.network.trace.

- `call_expectations`: what torch functions expect of their operands: `torch.cat`, `@`, `x.view`, …; where no
  line names them, from torch's own message
- `failing_expression`: finds the expression that failed, even inside a statement that spans many lines, and
  which of its tensors don't match
- `layer_expectations`: compares what a torch layer expects of its input with what it was given
- `loss_expectations`: what torch losses expect of an output and its target
- `mismatch`: a mismatch in words: what was expected and what was given. Shared by all explanations of
  shape errors
- `shape_error`: explains why a forward failed, from the traceback: its frames still reference modules and
  tensors
"""
