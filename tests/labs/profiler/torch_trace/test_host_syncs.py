"""Calls that read a tensor's values are counted at the user's line, and the methods are restored."""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path

import pytest
import torch
from watched_programs import line_of, run_file, watched

from clew.hooks.collect_layers.trained_models import ModelBook
from clew.labs.profiler.torch_trace.host_syncs import SyncWatch, by_mask
from clew.labs.profiler.torch_trace.kineto_window import KinetoWindow, ProgramProfiler
from clew.records.step_costs import Sync

PROGRAM = """
import torch
import io

for step in range(4):
    x = torch.arange(6.0)
    loss = (x * x).sum()
    loss.item()  # item
    float(loss)  # float
    bool(loss > 0)  # bool
    if (x > 2).any():  # if
        pass
    print(loss, file=io.StringIO())  # print
    f"{loss:.3f}"  # format
    x.cpu(); x.numpy(); x.tolist()  # three
    (x > 2).nonzero()  # nonzero
    for _ in range(3):
        int(loss)  # int
    mark(step + 1)
"""


def counted(folder: Path, text: str = PROGRAM) -> SyncWatch:
    watch = SyncWatch()
    watch.start()
    try:
        run_file(folder, text, mark=watch.mark)
    finally:
        watch.stop()
    assert watch.note is None
    return watch


@pytest.mark.parametrize(
    ("mark", "op", "calls"),
    [
        ("# item", ".item()", 1),
        ("# float", "float()", 1),
        ("# bool", "bool()", 1),
        ("# if", "bool()", 1),
        ("# print", "print()", 1),
        ("# format", "print()", 1),
        ("# nonzero", "nonzero", 1),
        ("# int", "int()", 3),
    ],
)
def test_calls_per_step_are_counted_at_their_line(mark: str, op: str, calls: int, tmp_path: Path) -> None:
    watch = counted(tmp_path)
    found = {(sync.op, sync.line): sync for sync in watch.found()}
    sync = found[op, line_of(PROGRAM, mark)]
    assert sync.calls == calls
    assert sync.seconds > 0
    assert sync.file == str(tmp_path / "program.py")
    assert mark in sync.code
    assert not watch.accelerator


def test_a_call_within_a_call_counts_once(tmp_path: Path) -> None:
    """Printing a tensor asks it for many numbers."""
    watch = counted(tmp_path)
    at_print = [sync for sync in watch.found() if sync.line == line_of(PROGRAM, "# print")]
    assert [sync.op for sync in at_print] == ["print()"]


def test_several_on_a_line_are_told_apart(tmp_path: Path) -> None:
    watch = counted(tmp_path)
    ops = {sync.op for sync in watch.found() if sync.line == line_of(PROGRAM, "# three")}
    assert ops == {".cpu()", ".numpy()", ".tolist()"}


def test_neither_clews_own_calls_nor_those_of_an_optimizer_count(tmp_path: Path) -> None:
    text = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    model(torch.ones(2, 2)).sum().backward()
    optimizer.step()
    mark(step + 1)
"""
    with watched():
        watch = counted(tmp_path, text)
    assert watch.found() == ()


def test_a_tensor_that_is_elsewhere_is_noticed(tmp_path: Path) -> None:
    text = """
import torch
repr(torch.ones(3, device="meta"))
mark(1)
"""
    assert counted(tmp_path, text).accelerator


def test_the_class_is_as_it_was(tmp_path: Path) -> None:
    def state() -> tuple[object, ...]:
        is_sequence = ctypes.pythonapi.PySequence_Check(ctypes.py_object(torch.ones(2)))
        return dict(vars(torch.Tensor)), dict(vars(torch.nn.Parameter)), is_sequence

    before = state()
    counted(tmp_path)
    assert state() == before
    assert torch.tensor([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1.0, 2.0]


def test_a_method_that_someone_wraps_meanwhile_stays_theirs() -> None:
    watch = SyncWatch()
    watch.start()
    ours = torch.Tensor.item

    def theirs(tensor: torch.Tensor) -> object:
        return ours(tensor)

    torch.Tensor.item = theirs  # type: ignore[method-assign, assignment]
    watch.stop()
    try:
        assert torch.Tensor.item is theirs
        assert torch.ones(()).item() == 1.0
    finally:
        del torch.Tensor.item


def test_errors_of_the_program_stay_its_own(tmp_path: Path) -> None:
    watch = SyncWatch()
    watch.start()
    try:
        with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
            torch.ones(3).item()
        with pytest.raises(RuntimeError, match="ambiguous"):
            bool(torch.ones(3))
    finally:
        watch.stop()


def test_torchs_warning_of_a_conversion_names_the_users_line(tmp_path: Path) -> None:
    text = """
import torch
float(torch.ones((), requires_grad=True))  # here
mark(1)
"""
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            watch = counted(tmp_path, text)
    finally:
        torch.set_warn_always(False)
    assert [(w.filename, w.lineno) for w in caught] == [
        (str(tmp_path / "program.py"), line_of(text, "# here"))
    ]
    assert [sync.calls for sync in watch.found()] == [1]


def test_a_program_that_compiles_is_left_alone() -> None:
    watch, before = SyncWatch(), dict(vars(torch.Tensor))
    watch.start(compiled=True)
    assert dict(vars(torch.Tensor)) == before
    assert watch.note is not None


def test_indexing_by_a_mask_is_counted_from_torchs_trace(tmp_path: Path) -> None:
    text = """
import torch
x = torch.arange(6.0)
for step in range(3):
    mark(step)
    x[x > 2]
    x[[0, 1]]
    (x > 2).nonzero()
mark(3)
"""
    models = ModelBook()
    window = KinetoWindow(models, models.known, ProgramProfiler())
    window.start(0)
    run_file(tmp_path, text, mark=lambda step: window.mark(step) if step else None)
    detail = window.stop()
    assert detail is not None
    (found,) = by_mask([detail], [Sync("nonzero", 1.0, 1e-6)])
    assert (found.op, found.calls, found.file) == ("masked indexing", 1.0, None)
    assert found.seconds > 0
    assert by_mask([detail], [Sync("nonzero", 2.0, 1e-6)]) == ()
