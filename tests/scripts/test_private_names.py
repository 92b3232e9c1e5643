from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "private_names.py"


def check(*folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_module_of_clew_reaches_for_a_private_name_of_another() -> None:
    found = check()
    assert (found.stdout, found.returncode) == ("", 0)


@pytest.mark.parametrize(
    "line",
    [
        "session._writer.flush()",
        "self._session._writer.flush()",
        "from clew.api.examine import _unseen",
        "from . import _unseen",
        "import torch; torch._made_up",
        "getattr(session, '_writer')",
        "self._patches.wrap(GrowthWatch, '_read', wrapper)",
        "patches.put(watch, '_survey', original, wrapper)",
    ],
)
def test_a_private_name_of_somebody_else_is_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(line)
    found = check(tmp_path)
    assert found.returncode == 1
    assert f"{tmp_path / 'module.py'}:1: _" in found.stdout


@pytest.mark.parametrize(
    "lines",
    [
        "def _flush():\n    ...\ndef f(session): session._flush()",
        "class A:\n    _flush = 1\ndef f(session): session._flush()",
        "class A:\n    def __init__(self): self._flush = 1\n    def f(self): self.session._flush()",
    ],
)
def test_a_name_that_the_module_uses_itself_does_not_hide_that_of_somebody_else(
    lines: str, tmp_path: Path
) -> None:
    (tmp_path / "module.py").write_text(lines)
    assert check(tmp_path).stdout == f"{tmp_path / 'module.py'}:3: _flush is private to another module\n"


def test_a_class_with_a_member_that_is_called_as_one_of_torch_is_found(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("class A:\n    _repr_html_ = 1\n    def f(self): self._workers = 1")
    assert [line.split(": ")[1] for line in check(tmp_path).stdout.splitlines()] == [
        "A has its own _workers, a name that is allowed as torch's"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "class A:\n    def f(self): self._x = 1\n    def g(self, other): return other._x",
        "def f(cls): return cls._x",
        "class A:\n    _x = 1\nclass B:\n    def __init__(self, a: A): a._x\n    def f(self): self._a._x",
        "patches.wrap(scaler, '_maybe_opt_step', wrapper)",
        "def f(module): return module._parameters",
        "from torch.nn.modules.conv import _ConvNd",
        "x.__dict__",
    ],
)
def test_names_of_the_module_itself_and_known_ones_of_torch_pass(lines: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(lines)
    assert check(tmp_path).stdout == ""
