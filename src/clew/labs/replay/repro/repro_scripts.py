"""The text of the files in a repro folder."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any

from clew.labs.replay import loss_gradients
from clew.labs.replay.repro import rebuilt_step, saved_sources, saved_values
from clew.measure import nested_tensors
from clew.records.facts.nan_facts import CulpritFact

NEWLINE = "\n"
_LONGEST = 100  # characters of a line


def script(data: dict[str, Any]) -> str:
    """`repro.py`: runs the step again and says what is not finite."""
    compute = _compute(data)
    return f'''"""{_heading(data)}

    python repro.py         reproduces it: exit code 1 while it fails, 0 once it is fixed
    pytest test_repro.py    fails until it is fixed

{_wrapped(_about(data))}
"""

import sys
from pathlib import Path

from rebuild import SavedStep, main

{compute or NEWLINE}def run():
    """Replay the saved step."""
    return SavedStep(Path(__file__).parent).run({"compute" if compute else ""})


if __name__ == "__main__":
    sys.exit(main(run))
'''


def test(data: dict[str, Any]) -> str:
    """`test_repro.py`: fails until the step is finite."""
    return f'''"""{_heading(data)}"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from repro import run


def test_step_{data["step"]}_is_finite():
    problem = run().problem
    assert problem is None, problem
'''


def bundled() -> str:
    """`rebuild.py` with everything it needs from Clew in the same file."""
    texts = [_standalone(Path(str(part.__file__)).read_text(encoding="utf-8")) for part in _PARTS]
    heading = ast.get_docstring(ast.parse(Path(str(rebuilt_step.__file__)).read_text(encoding="utf-8")))
    return f'"""{heading}\n"""\n\nfrom __future__ import annotations\n\n' + "\n\n".join(texts)


_PARTS = (nested_tensors, saved_sources, saved_values, loss_gradients, rebuilt_step)


def _standalone(text: str) -> str:
    """A module without its docstring, its Clew imports and its `__future__` imports."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("clew", "__future__"))
        if ours or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).strip() + "\n"


def summary(culprit: CulpritFact) -> str:
    """What was observed when it was saved, in one line."""
    place = f" ({culprit.file}:{culprit.line})" if culprit.line else ""
    return f"{culprit.sentence or f'the {culprit.where} was not finite'}{place}"


def _heading(data: dict[str, Any]) -> str:
    return _wrapped(f"Step {data['step']}: {data['summary']}")


def _wrapped(text: str) -> str:
    plain = text.replace("\\", "/").replace('"""', "'''")
    return "\n".join(textwrap.wrap(plain, _LONGEST, break_long_words=False, break_on_hyphens=False))


def _about(data: dict[str, Any]) -> str:
    text = (
        "It needs torch, safetensors and the program's own source, which defines its classes and functions."
    )
    if data["shown"]["seen"] is False:
        return f"{text} It does NOT reproduce the failure: {data['shown']['reason']}."
    if data["culprit"].get("phase") in ("batch", "parameter"):
        return f"{text} The saved input was already non-finite: no change to the code makes it finite."
    if data["recipe"] is None:
        return f"{text} The code of the loss could not be saved: only the models are replayed."
    return f"{text} A fix in the program takes effect here; `compute` is a copy, so fix it here too."


def _compute(data: dict[str, Any]) -> str:
    """The statements as a function of what they read, so that their names don't clash with the script's."""
    recipe = data["recipe"]
    if recipe is None:
        return ""
    imported = [_import(name, value) for name, value in data["names"].items() if _is_installed(value)]
    parts = ["\n".join(imported), _body(recipe["source"])]
    body = textwrap.indent("\n\n".join(part for part in parts if part), "    ")
    about = _wrapped(f"What {recipe['file']} computed before it called backward().")
    return f'''
{_signature([name for name, value in data["names"].items() if not _is_installed(value)])}
    """{about}"""
{body}


'''


def _signature(names: list[str]) -> str:
    head = f"def compute({', '.join(names)}):"
    if len(head) <= _LONGEST:
        return head
    indent = "    "
    listed = textwrap.fill(", ".join(names), _LONGEST, initial_indent=indent, subsequent_indent=indent)
    return f"def compute(\n{listed},\n):"


def _import(name: str, value: dict[str, Any]) -> str:
    return f"import {name}" if value["module"] == name else f"import {value['module']} as {name}"


def _is_installed(value: Any) -> bool:
    return isinstance(value, dict) and value["kind"] == "import" and value["file"] is None


def _body(source: str) -> str:
    """The last statement assigns the loss."""
    tree = ast.parse(source)
    last = tree.body[-1]
    assert isinstance(last, ast.Assign)
    tree.body[-1] = ast.Return(last.value)
    return ast.unparse(ast.fix_missing_locations(tree))
