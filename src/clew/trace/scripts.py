"""The text of the scripts in a repro folder."""

from __future__ import annotations

import textwrap
from typing import Any

LOSS = "__clew_loss__"
_LONGEST = 100  # characters of a sentence in a heading


def script(data: dict[str, Any]) -> str:
    """`repro.py`: runs the step again and prints what comes out."""
    return f'''"""{_heading(data)}

Run it: python repro.py. It needs torch, safetensors and the program's own source; the models are made
from that source, so that a fix there is seen here. {_advice(data)}
"""

from pathlib import Path

import torch

from rebuild import SavedStep

HERE = Path(__file__).parent


{_compute(data)}


def run():
    """The results of the step, and the gradients of its parameters if there is a loss."""
    step = SavedStep(HERE)
    with step.conditions():
        results = compute(step)
        gradients = {_gradients(data)}
    return results, gradients


def bad(tensors):
    """The names of those that are not finite."""
    return [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]


if __name__ == "__main__":
    results, gradients = run()
    for name, tensor in results.items():
        value = tensor.item() if tensor.numel() == 1 else f"{{tuple(tensor.shape)}}"
        print(f"{{name}}: {{value}}")
    print("not finite:", ", ".join(bad(results) + bad(gradients)) or "nothing")
'''


def test(data: dict[str, Any]) -> str:
    """`test_repro.py`: fails until the step is finite."""
    return f'''"""{_heading(data)}

These tests fail until that is fixed: pytest test_repro.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from repro import bad, run


def test_step_{data["step"]}_gives_finite_results():
    results, _ = run()
    assert not bad(results)


def test_step_{data["step"]}_gives_finite_gradients():
    _, gradients = run()
    assert not bad(gradients)
'''


def _heading(data: dict[str, Any]) -> str:
    culprit = data["culprit"]
    what = culprit.get("sentence") or f"the {data['where']} was not finite"
    place = f" ({culprit['file']}:{culprit['line']})" if culprit.get("line") else ""
    text = f"Step {data['step']}: {what}{place}".replace("\\", "/").replace('"""', "'''")
    return "\n".join(textwrap.wrap(text, _LONGEST, break_long_words=False))


def _advice(data: dict[str, Any]) -> str:
    if data["culprit"].get("phase") in ("batch", "parameter"):
        return "What went in was\nbad already and is saved as it was: no change of the code makes it finite."
    if data["recipe"] is None:
        return "The code of the loss\ncould not be saved: only the models are run."
    return "The statements\nof the training loop are copied into `compute`: fix those there too."


def _compute(data: dict[str, Any]) -> str:
    if data["recipe"] is None:
        return '''def compute(step):
    """The models, called as they were."""
    outputs = [model(*args, **kwargs) for model, args, kwargs in step.calls]
    return {f"output {n}": t for n, t in enumerate(tensors(outputs)) if t.is_floating_point()}


def tensors(value):
    """All tensors in lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors(item)'''
    names = [name for name in data["names"] if name != "torch"]
    taken = "".join(f"    {name} = step.names[{name!r}]\n" for name in names)
    body = textwrap.indent(data["recipe"]["source"].replace(LOSS, "loss_"), "    ")
    return f'''def compute(step):
    """What {data["recipe"]["file"]} computed before it called backward()."""
{taken}
{body}
    return {{"loss": loss_}}'''


def _gradients(data: dict[str, Any]) -> str:
    return "{}" if data["recipe"] is None else 'step.gradients(results["loss"])'
