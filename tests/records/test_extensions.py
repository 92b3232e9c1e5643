"""Built-in checks and experiments are found in their folders."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from clew.records.extensions import built_ins


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


ROUND = """
from {here} import Shape

class Disc(Shape):
    def area(self): return 3.14

class Abstract(Shape):
    pass
"""
SQUARE = """
from shapes.curved.round import Disc

class Square(Disc):
    pass
"""


def test_concrete_classes_are_found_once_where_they_are_defined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"curved/round.py": ROUND.format(here=__name__), "straight/square.py": SQUARE}
    files |= {"tools/square_root.py": SQUARE, "beside.py": SQUARE}
    for name, text in files.items():
        path = tmp_path / "shapes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").write_text("")
    (tmp_path / "shapes" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    found = built_ins(Shape, importlib.import_module("shapes"), leave_out={"tools"})
    assert [kind.__name__ for kind in found] == ["Disc", "Square"]
