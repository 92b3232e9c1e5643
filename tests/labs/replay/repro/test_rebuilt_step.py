"""What is described and rebuilt is the same: values, identities, and what a model computes."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import functools
import json
import types
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from clew.labs.replay.repro.rebuilt_step import SavedStep
from clew.labs.replay.repro.repro_scripts import bundled
from clew.labs.replay.repro.saved_description import SavedDescription, TooLargeError
from clew.labs.replay.repro.saved_sources import CannotRebuild, definitions, find


class Choice(str, enum.Enum):
    FIRST = "first"
    SECOND = "second"


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    number: int
    choices: list[Choice]


class Pair(NamedTuple):
    first: int
    second: str


def own_function(number: float, power: int = 2) -> float:
    return number**power


DOUBLE = lambda x: 2 * x  # noqa: E731 - as people write them


class Tied(nn.Module):
    """Shared weights, buffers, functions and settings as attributes."""

    def __init__(self, settings: argparse.Namespace) -> None:
        super().__init__()
        self.settings = settings
        self.tokens = nn.Embedding(11, settings.width)
        self.rnn = nn.LSTM(settings.width, settings.width, num_layers=2, batch_first=True)
        self.norm = nn.BatchNorm1d(settings.width)
        self.out = nn.Linear(settings.width, 11, bias=False)
        self.out.weight = self.tokens.weight
        self.register_buffer("shift", torch.arange(settings.width).float(), persistent=False)
        self.squash = torch.tanh
        self.sizes = {"first": (3, 4), 2: [torch.float16, None]}

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(self.tokens(tokens))
        return self.out(self.norm(self.squash(states[:, -1] + self.shift)))


def saved(folder: Path, limit: int = 10**9, **names: Any) -> SavedStep:
    """Write values as a step's names, and read them."""
    description = SavedDescription(limit)
    described = {name: description.of(value, name) for name, value in names.items()}
    roots = {n: description.number_of(v) for n, v in names.items() if isinstance(v, nn.Module)}
    data = {"format": 2, "names": described, "calls": [], "roots": roots, "rng": {}, "paths": []}
    (folder / "repro.json").write_text(json.dumps(data))
    save_file(description.tensors, str(folder / "tensors.safetensors"))
    return SavedStep(folder)


def test_a_model_computes_the_same_again(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Tied(argparse.Namespace(width=8, name="small"))
    model.norm.eval()
    tokens = torch.randint(11, (5, 7))
    step = saved(tmp_path, model=model, tokens=tokens)
    again = step.names["model"]
    assert torch.equal(again(step.names["tokens"]), model(tokens))
    assert again is step.models["model"]
    assert (again.training, again.norm.training) == (True, False)
    assert again.out.weight is again.tokens.weight
    assert again.settings == model.settings
    assert again.sizes == model.sizes
    assert list(again.state_dict()) == list(model.state_dict())


def test_plain_values_come_back_as_they_were(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "number": 3,
        "infinite": float("-inf"),
        "nested": [(1, 2.5), {"a": None, 3: {True}}],
        "size": torch.Size([2, 3]),
        "function": torch.nn.functional.relu,
        "module": torch.nn.functional,
        "kind": nn.Linear,
        "slice": slice(2, None, 3),
        "range": range(1, 9, 2),
        "ellipsis": ...,
        "index": (slice(None), ..., None),
        "frozen": frozenset({1, 2}),
        "complex": 1 - 2j,
        "bytes": b"\x00\xff",
        "choice": Choice.SECOND,
        "setting": Frozen(3, [Choice.FIRST]),
        "pair": Pair(1, "two"),
        "scalar": np.float32(0.25),
        "text": np.array(["a", "bc"])[1],
        "order": OrderedDict(b=1, a=2),
        "count": defaultdict(list, {"a": [1]}),
        "space": types.SimpleNamespace(a=1),
        "lambda": DOUBLE,
        "own": own_function,
    }
    names = saved(tmp_path, **values).names
    assert names == values
    assert [type(value) for value in names.values()] == [type(value) for value in values.values()]
    array = saved(tmp_path, array=np.arange(6.0).reshape(2, 3)).names["array"]
    assert np.array_equal(array, np.arange(6.0).reshape(2, 3))


def test_what_is_made_of_functions_comes_back(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    part = functools.partial(own_function, 2, power=3)
    names = saved(tmp_path, model=model, part=part, call=model.forward).names
    assert (names["part"](), names["part"].func) == (8, own_function)
    assert names["call"].__self__ is names["model"]


@pytest.mark.parametrize("kind", ["i1", "u8", "f2", "c16", "?", "M8[s]", "U3"])
def test_arrays_keep_their_kind_and_shape(tmp_path: Path, kind: str) -> None:
    array = np.zeros((2, 0, 3) if kind == "i1" else (2, 3), kind)
    again = saved(tmp_path, array=array).names["array"]
    assert (again.dtype, again.shape, again.flags.writeable) == (array.dtype, array.shape, True)
    assert np.array_equal(again, array)


def test_tensors_keep_their_layout(tmp_path: Path) -> None:
    values = {"sparse": torch.eye(3).to_sparse(), "pairs": torch.full((2,), 1 + 2j, dtype=torch.complex128)}
    names = saved(tmp_path, **values).names
    assert names["sparse"].layout == torch.sparse_coo
    assert torch.equal(names["sparse"].to_dense(), torch.eye(3))
    assert torch.equal(names["pairs"], values["pairs"])


def test_of_a_dictionary_only_what_cannot_be_saved_is_left_out(tmp_path: Path) -> None:
    step = saved(tmp_path, batch={"x": 1, "reader": iter([1])})
    assert step.names["batch"] == {"x": 1}
    assert step.dropped == ["batch['reader'] (list_iterator)"]


def test_a_tensor_that_occurs_twice_stays_one(tmp_path: Path) -> None:
    x = torch.randn(3, requires_grad=True)
    names = saved(tmp_path, x=x, both=[x, x.detach()]).names
    assert names["both"][0] is names["x"]
    assert names["both"][1] is not names["x"]
    assert names["x"].requires_grad


def test_what_cannot_be_described_is_named_and_left_out(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    model.callback = lambda x: x  # type: ignore[assignment]
    step = saved(tmp_path, model=model)
    assert step.dropped == ["model.callback (function)"]
    assert not hasattr(step.names["model"], "callback")


def test_more_bytes_than_allowed_are_refused() -> None:
    with pytest.raises(TooLargeError):
        SavedDescription(limit=399).of(torch.zeros(100), "x")
    assert SavedDescription(limit=400).of(torch.zeros(100), "x")["kind"] == "tensor"


def test_only_the_definitions_of_a_script_are_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "from torch import nn\n"
        "WIDTH = 2 * 4\n"
        "DEVICE = torch.device('cpu')\n"
        "DATA = open('/nowhere').read()\n"
        "raise SystemExit('training')\n"
        "class Net(nn.Linear):\n"
        "    size = WIDTH\n"
        "class Broken(Missing):\n"
        "    pass\n"
        "if __name__ == '__main__':\n"
        "    raise SystemExit('training')\n"
    )
    module, problems = definitions(str(script))
    assert module.Net.size == 8
    assert torch.device("cpu") == module.DEVICE
    assert "Missing" in problems["Broken"]
    assert not hasattr(module, "DATA")


def test_a_class_that_is_gone_is_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("from torch import nn\n")
    wanted = {"kind": "name", "module": "__main__", "name": "Net", "file": str(script)}
    with pytest.raises(CannotRebuild, match=r"Net of .*train.py: it is no longer defined there"):
        find(wanted)
    with pytest.raises(CannotRebuild, match=r"Net is needed from /gone.py"):
        find({**wanted, "file": "/gone.py"})


def test_the_file_runs_where_clew_is_not_installed() -> None:
    imported = [node for node in ast.walk(ast.parse(bundled())) if isinstance(node, ast.ImportFrom)]
    assert imported
    assert not [node.module for node in imported if (node.module or "").startswith("clew")]
    exec(compile(bundled(), "rebuild.py", "exec"), {"__name__": "rebuild"})
