"""Code in a fix can be pasted: layers are named as Python reads them."""

from __future__ import annotations

import ast

import pytest
from torch import nn

from clew.checks.wording import in_code


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "model"),
        ("encoder.fc1", "model.encoder.fc1"),
        ("2", "model[2]"),
        ("layers.0.fc.1.weight", "model.layers[0].fc[1].weight"),
        ("heads.up-sampling", "model.get_submodule('heads.up-sampling')"),
    ],
)
def test_a_path_is_written_as_python_reads_it(path: str, code: str) -> None:
    assert in_code(path) == code
    ast.parse(in_code(path))


def test_the_code_finds_the_module() -> None:
    model = nn.Sequential(nn.ModuleDict({"up-sampling": nn.Linear(1, 1)}), nn.ModuleList([nn.Tanh()]))
    for path, module in model.named_modules():
        assert eval(in_code(path), {"model": model}) is module
