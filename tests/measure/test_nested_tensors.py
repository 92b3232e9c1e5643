"""Walking nested values: what is found in each, in which order, and what is rebuilt."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from clew.measure.nested_tensors import (
    data_tensors,
    first_tensor,
    instances_in,
    map_tensors,
    merge_nested,
    named_tensors,
    tensors_in,
)

A, B, C = (torch.full((2,), float(n)) for n in range(3))

Pair = namedtuple("Pair", ["left", "right"])


@dataclass(frozen=True)
class Output:
    logits: Tensor
    hidden: Any = None


class Named(dict[str, Any]):
    """A dict of a class of its own, with something more."""


class Lazy(Mapping[str, Tensor]):
    """Its values are made when they are asked for: code of the program's."""

    asked = 0

    def __getitem__(self, key: str) -> Tensor:
        self.asked += 1
        return A

    def __iter__(self) -> Iterator[str]:
        return iter(["x"])

    def __len__(self) -> int:
        return 1


NESTED = [
    (A, B, C),
    [A, [B, (C, 1, "text", None)]],
    {"a": A, "b": {"c": B}, "d": [C]},
    Pair(A, (B, C)),
    Output(A, [B, C]),
    Named(a=A, b=B, c=C),
    OrderedDict(a=A, b=(B, C)),
    defaultdict(list, a=[A, B, C]),
    (Output(A), {"x": Pair(B, C)}),
]
ALSO_IN_LABS = [
    UserDict(a=A, b=[B, C]),
    deque([A, B, C]),
    MappingProxyType({"a": A, "b": (B, C)}),
]


@pytest.mark.parametrize("value", [*NESTED, *ALSO_IN_LABS], ids=lambda v: type(v).__name__)
def test_all_tensors_are_found_in_order(value: Any) -> None:
    assert [id(t) for t in tensors_in(value)] == [id(A), id(B), id(C)]


@pytest.mark.parametrize("value", NESTED, ids=lambda v: type(v).__name__)
def test_hooks_find_the_same_in_plain_containers(value: Any) -> None:
    assert [id(t) for t in data_tensors(value)] == [id(A), id(B), id(C)]
    assert first_tensor(value) is A


@pytest.mark.parametrize("value", [*NESTED, *ALSO_IN_LABS], ids=lambda v: type(v).__name__)
def test_a_changed_nesting_is_of_the_same_classes_and_leaves_the_old_one_alone(value: Any) -> None:
    changed = map_tensors(value, lambda t: t + 10)
    assert [float(t[0]) for t in tensors_in(changed)] == [10.0, 11.0, 12.0]
    assert type(changed) is type(value) or isinstance(value, MappingProxyType)
    assert [id(t) for t in tensors_in(value)] == [id(A), id(B), id(C)]


def test_a_tensor_alone_is_what_is_found_and_changed() -> None:
    assert tensors_in(A) == data_tensors(A) == [A]
    assert first_tensor(A) is A
    assert torch.equal(map_tensors(A, lambda t: t + 1), B)


def test_values_without_tensors_have_none_and_stay() -> None:
    for value in (None, 3, "text", object(), [], {"a": 1}, Output):
        assert tensors_in(value) == data_tensors(value) == []
        assert first_tensor(value) is None
    assert map_tensors({"a": (1, "text")}, lambda t: t) == {"a": (1, "text")}


def test_hooks_take_the_data_of_a_packed_sequence_and_labs_all_of_it() -> None:
    packed = pack_sequence([torch.ones(3, 2), torch.ones(1, 2)])
    assert data_tensors((packed, A)) == [packed.data, A]
    assert [id(t) for t in tensors_in(packed)] == [id(t) for t in packed if t is not None]
    doubled = map_tensors(packed, lambda t: t * 2 if t.is_floating_point() else t)
    assert type(doubled) is type(packed)
    assert float(doubled.data.sum()) == 16.0


def test_hooks_run_no_code_of_the_programs() -> None:
    lazy = Lazy()
    assert data_tensors([lazy]) == []
    assert first_tensor([lazy]) is None
    assert lazy.asked == 0
    assert tensors_in([lazy]) == [A]


def test_a_list_that_contains_itself_ends() -> None:
    loop: list[Any] = [A]
    loop.append(loop)
    assert tensors_in(loop)[0] is A
    assert first_tensor([loop]) is A
    assert len(list(named_tensors("x", loop))) < 20


def test_tensors_are_named_by_where_they_are() -> None:
    value = {"images": [A, B], "pair": Pair(A, None), "out": Output(C)}
    names = [name for name, _ in named_tensors("batch", value)]
    assert names == ["batch.images[0]", "batch.images[1]", "batch.pair.left", "batch.out.logits"]


def test_large_containers_can_be_left_out_of_the_names() -> None:
    found = named_tensors("x", {"few": [A], "many": [B] * 5}, most=4)
    assert [name for name, _ in found] == ["x.few[0]"]


def test_other_kinds_are_found_and_changed_too() -> None:
    array = np.ones(2)
    value = {"a": [array, A], "b": 1}
    assert [type(v) for v in instances_in(value, (Tensor, np.ndarray))] == [np.ndarray, Tensor]
    changed = map_tensors(value, lambda one: one + 1, kinds=np.ndarray)
    assert changed["a"][1] is A
    assert changed["a"][0].tolist() == [2.0, 2.0]


def test_what_else_a_mapping_knows_is_kept() -> None:
    named = Named(a=A)
    named.source = "file"  # type: ignore[attr-defined]
    assert map_tensors(named, lambda t: t).source == "file"


def first_unless_text(kept: Any, given: Any) -> Any:
    return given if isinstance(kept, str) else kept


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ((A, {"x": "new", "n": 1}), (B, {"x": C, "n": 2})),
        ([UserDict(x=A, y="new")], [UserDict(x=B, y=C)]),
        ([Output(A, ("new", 1))], [Output(B, (C, 2))]),
        ([Pair(A, "new")], [Pair(B, C)]),
    ],
)
def test_values_of_two_equal_nestings_are_merged_one_by_one(kept: Any, given: Any) -> None:
    merged = merge_nested(kept, given, first_unless_text)
    tensors = tensors_in(merged)
    assert [id(t) for t in tensors] == [id(A), id(C)]
    assert type(merged[-1]) is type(given[-1])
    assert [id(t) for t in tensors_in(given)] == [id(B), id(C)]


@pytest.mark.parametrize(
    ("kept", "given"),
    [((A,), [A]), ([A, B], [A]), ({"x": A}, {"y": A}), ([A], [[A]]), (Output(A), Pair(A, None))],
)
def test_values_that_are_nested_differently_are_not_merged(kept: Any, given: Any) -> None:
    assert merge_nested([kept, B], value := [given, C], first_unless_text) is value


def test_a_value_that_stays_the_same_is_not_copied() -> None:
    given = (Output(A, [B]), {"x": C})
    assert merge_nested((Output(C, [C]), {"x": A}), given, lambda kept, now: now) is given
