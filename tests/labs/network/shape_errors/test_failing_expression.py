"""A line of the user's own that fails: the very expression, its operands, and what they should be."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clew.labs.network.shape_errors import failing_expression
from clew.labs.network.shape_errors.shape_error import explain_mismatch
from clew.records.network import ShapeError

positions = pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns before 3.11")
R = torch.randn


def told(action: Callable[..., Any], *operands: Any) -> ShapeError:
    try:
        action(*operands)
    except Exception as error:  # noqa: BLE001 - the very thing that is looked at
        found = explain_mismatch(error)
        assert found is not None
        return found
    raise AssertionError("nothing was raised")


CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], str, str, str | None]] = [
    (
        lambda a, b: torch.cat([a, b], 1),
        (R(4, 3, 5), R(4, 2, 6)),
        "equal sizes except in dimension 1",
        "a 4×3×5, b 4×2×6",
        "they differ in dimension 2: 5 against 6",
    ),
    (
        lambda a, b: torch.cat((a, b), dim=-2),
        (R(4, 3), R(4, 8)),
        "equal sizes except in dimension 0",
        "a 4×3, b 4×8",
        "they differ in dimension 1: 3 against 8; they can be joined along that one: dim=1",
    ),
    (
        lambda parts: torch.cat(parts, 1),
        ([R(4, 3), R(4, 8), R(5, 8)],),
        "equal sizes except in dimension 1",
        "parts[0] 4×3, parts[2] 5×8",
        "they differ in dimension 0: 4 against 5",
    ),
    (
        lambda a, b: torch.cat([a, b]),
        (R(4, 3), R(4, 3, 1)),
        "2 dimensions, as a has",
        "a 4×3, b 4×3×1",
        "they must have the same number of dimensions",
    ),
    (
        lambda a, b: torch.stack([a, b]),
        (R(4, 3), R(4, 2)),
        "tensors of the same shape",
        "a 4×3, b 4×2",
        "stack adds a new dimension, so all others must be equal",
    ),
    (
        lambda a, b: torch.bmm(a, b),
        (R(2, 4, 3), R(2, 5, 3)),
        "… × 3 @ 3 × …",
        "a 2×4×3, b 2×5×3",
        "transpose the second: b.transpose(-2, -1)",
    ),
    (
        lambda a, b: a.bmm(b),
        (R(2, 4, 3), R(3, 3, 7)),
        "the same batch in both: 2",
        "a 2×4×3, b 3×3×7",
        "bmm does not broadcast its batches",
    ),
    (
        lambda a, b: torch.bmm(a, b),
        (R(4, 3), R(3, 7)),
        "batch × n × m, batch × m × p",
        "a 4×3, b 3×7",
        "both must have 3 dimensions; a @ b takes any number of dimensions",
    ),
    (
        lambda a, b: torch.matmul(a, b),
        (R(4, 3), R(5, 7)),
        "… × 3 @ 3 × …",
        "a 4×3, b 5×7",
        "the inner sizes must be equal",
    ),
    (
        lambda a, b: a @ b,
        (R(2, 4, 3), R(5, 3, 7)),
        "equal sizes, or 1, in dimension -3",
        "a 2×4×3, b 5×3×7",
        "a has 2 matrices there, b has 5",
    ),
    (lambda a: a.view(4, 5, 5, 3), (R(4, 5, 12),), "300 elements for 4×5×5×3", "4×5×12, 240 elements", None),
    (
        lambda a: a.reshape(-1, 50),
        (R(4, 3, 13),),
        "a multiple of 50 elements",
        "4×3×13, 156 elements",
        "156 is not a multiple of 50; x.flatten(1), one row per sample, gives 4×39",
    ),
    (lambda a: a.exp().view(a.shape[0], 7), (R(4, 5),), "28 elements for 4×7", "20 elements", None),
    (
        lambda q, k: F.scaled_dot_product_attention(q, k, k),
        (R(2, 4, 5, 8), R(2, 4, 5, 16)),
        "keys of … × 8",
        "q 2×4×5×8, k 2×4×5×16",
        "queries and keys must have the same last size: 8 against 16",
    ),
    (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        (R(2, 4, 5, 8), R(6, 6)),
        "a mask of … × 5 × 5",
        "6×6",
        "the mask needs one row per query and one column per key",
    ),
    (
        lambda a, b: torch.add(a, b),
        (R(4, 3), R(4, 5)),
        "sizes that are equal, or 1, counted from the last dimension",
        "a 4×3, b 4×5",
        "they differ in dimension -1: 3 against 5",
    ),
    (
        lambda a, b: a.mul_(b),
        (R(4, 3), R(4, 5)),
        "sizes that are equal, or 1, counted from the last dimension",
        "a 4×3, b 4×5",
        "they differ in dimension -1: 3 against 5",
    ),
    (
        lambda a, b: a.exp() * b.exp(),
        (R(4, 3), R(4, 5)),
        "equal sizes, or 1, in dimension 1",
        "3 against 5",
        None,
    ),
    (
        lambda a, b: a.exp() @ b.exp(),
        (R(4, 3), R(5, 7)),
        "… × 3 @ 3 × …",
        "4×3 @ 5×7",
        "the inner sizes must be equal: 3 against 5",
    ),
    (lambda a: a[:, 7], (R(4, 3),), "an index from 0 to 2 in dimension 1", "7", None),
    (
        lambda a: a.expand(4, 5),
        (R(4, 3),),
        "3, or a size of 1, in dimension 1",
        "a requested size of 5",
        None,
    ),
    (lambda a: a.sum(2), (R(4, 3),), "a dimension from -2 to 1", "2", None),
]


@pytest.mark.parametrize(("action", "operands", "expected", "given", "fix"), CALLS)
def test_operands_are_held_against_each_other(
    action: Callable[..., Any], operands: tuple[Any, ...], expected: str, given: str, fix: str | None
) -> None:
    found = told(action, *operands)
    assert (found.expected, found.given, found.suggestion) == (expected, given, fix)


def test_a_view_of_a_transposed_tensor_becomes_a_reshape() -> None:
    found = told(lambda a: a.t().view(-1), R(4, 3))
    assert ".reshape(" in (found.suggestion or "")


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 3)
        self.g = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return (
            self.fc(x)
            + self.g(x)
        )  # fmt: skip


class Join(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        short = x[:, :3]
        return torch.cat(
            [
                short,
                x,
            ],
            0,
        )


class Chain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x
                .view(
                    -1,
                    5,
                ))  # fmt: skip


@positions
def test_an_expression_over_several_lines_is_shown_whole() -> None:
    assert told(Sum(), R(4, 8)).code == "self.fc(x) + self.g(x)"
    found = told(Join(), R(4, 8))
    assert found.code == "torch.cat([short, x], 0)"
    assert found.given == "short 4×3, x 4×8"
    assert [name for name, _ in found.frames[-1].given] == ["short", "x"]
    assert told(Chain(), R(4, 8)).given == "4×8, 32 elements"


@positions
def test_only_the_expression_that_failed_is_judged() -> None:
    def two(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return (a + 1) @ c if b is None else (a * a) + torch.cat([b, c], 1)

    found = told(two, R(4, 3), R(4, 3), R(5, 3))
    assert found.given == "b 4×3, c 5×3"
    assert [name for name, _ in found.frames[-1].given] == ["b", "c"]


def test_older_pythons_get_the_whole_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_expression, "_position", lambda code, instruction: None)
    found = told(Join(), R(4, 8))
    assert found.code == "return torch.cat([short, x], 0)"
    assert found.given == "short 4×3, x 4×8"


def test_in_place_sums_are_judged_too() -> None:
    def grow(a: Tensor, b: Tensor) -> None:
        a += b

    assert told(grow, R(4, 3), R(4, 5)).given == "a 4×3, b 4×5"


class Strict(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        raise ValueError(
            f"a shape of {tuple(x.shape)}"
            " is not supported",
        )  # fmt: skip


def test_a_check_of_the_programs_own_is_left_alone_wherever_it_stands() -> None:
    source = "def check(x):\n    if x.dim() != 9: raise ValueError('expected a shape of size 9')\n"
    space: dict[str, Any] = {}
    linecache.cache["<checks>"] = (len(source), None, source.splitlines(keepends=True), "<checks>")
    exec(compile(source, "<checks>", "exec"), space)
    for check in (Strict(), space["check"]):
        with pytest.raises(ValueError, match="a shape of") as failed:
            check(R(3))
        assert explain_mismatch(failed.value) is None
    del linecache.cache["<checks>"]


def test_source_that_can_not_be_read_is_no_obstacle() -> None:
    space: dict[str, Any] = {"nn": nn}
    body = "class Net(nn.Module):\n    def forward(self, a, b):\n        return a + b\n"
    exec(compile(body, "<nowhere>", "exec"), space)
    found = told(space["Net"](), R(2, 3), R(2, 5))
    assert (found.given, found.code) == ("3 against 5", "")
