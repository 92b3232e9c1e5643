"""Groups consecutive identical siblings, so that they are drawn once: `layers.0 ×12`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field


@dataclass
class Tree:
    """A thing's place among others: its children by their positions."""

    parents: Sequence[int | None]
    signature: Callable[[int], Hashable]
    children: dict[int | None, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, parent in enumerate(self.parents):
            self.children.setdefault(parent, []).append(number)

    def shapes(self) -> list[int]:
        """For each thing a number that it shares with all that look the same, down to their leaves."""
        numbers: dict[Hashable, int] = {}
        shapes = [0] * len(self.parents)
        for index in reversed(range(len(self.parents))):  # children come after their parents
            below = tuple(shapes[c] for c in self.children.get(index, ()))
            shapes[index] = numbers.setdefault((self.signature(index), below), len(numbers))
        return shapes

    def descendants(self, index: int) -> list[int]:
        found, waiting = [], list(self.children.get(index, ()))
        while waiting:
            child = waiting.pop()
            found.append(child)
            waiting += self.children.get(child, ())
        return found


def fold(tree: Tree, can_fold: Callable[[int], bool]) -> tuple[dict[int, int], set[int]]:
    """How often the first of each run of equal siblings stands, and what is drawn as part of one."""
    shapes = tree.shapes()
    repeats: dict[int, int] = {}
    hidden: set[int] = set()
    for siblings in tree.children.values():
        first: int | None = None
        for index in siblings:
            if first is not None and shapes[index] == shapes[first] and can_fold(index):
                repeats[first] = repeats.get(first, 1) + 1
                hidden |= {index, *tree.descendants(index)}
            else:
                first = index if can_fold(index) else None
    return repeats, hidden
