"""Why a forward failed: what was expected, what was given, and the fix.

Enter at `shape_error.py`. May import: records, hooks, labs.snapshot, labs.network.

- `call_expectations`: what functions of torch expect of their operands: `torch.cat`, `@`, `x.view`, …
- `failing_expression`: the expression that failed, as the user wrote it: also in the middle of a
  statement over many lines
- `layer_expectations`: what a layer of torch's expects of its input, against what it was given
- `line_tensors`: the tensors that a line of the user's code names, and what is wrong between them
- `loss_expectations`: what losses expect of an output and its target
- `mismatch`: what does not fit what, in words; shared by all that judge a failed forward
- `shape_error`: why a forward failed, read from the traceback: frames still hold the modules and the
  tensors
- `torch_messages`: expected against given, read from torch's own message: for operands that no line names
"""
