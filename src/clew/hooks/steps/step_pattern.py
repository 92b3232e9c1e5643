"""Step pattern: the order of events within a step, as a short string that repeats from step to step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

LONGEST = 256  # tokens kept before repeats are folded in place: a validation loop may be long
MOST_PATTERNS = 1_000  # for a program whose every step differs, a larger dictionary is not worth it


class Pattern:
    """Collects the tokens of one step, and gives equal steps an equal number."""

    def __init__(self, announce: Callable[[int, str], None]) -> None:
        self._announce = announce
        self._tokens: list[str] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._known: dict[str, int] = {}

    @staticmethod
    @functools.cache
    def token(letter: str, index: int) -> str:
        """Token of an event; the first model and optimizer have no number."""
        return letter if index == 0 else f"{letter}{index}"

    def add(self, letter: str, index: int = 0) -> None:
        """Note an event."""
        self.extend((self.token(letter, index),))

    def extend(self, tokens: Iterable[str]) -> None:
        """Note several events."""
        self._tokens.extend(tokens)
        if len(self._tokens) >= LONGEST:
            self._tokens = fold(self._tokens)[: LONGEST // 2]

    def batch_after_evaluation(self) -> bool:
        """Whether the newest events are a forward without gradient and another batch."""
        return len(self._tokens) > 1 and self._tokens[-1] == "d" and self._tokens[-2][0] in "em"

    @property
    def has_begun(self) -> bool:
        """Whether the step has had a training forward, a backward or an update."""
        return any(token[0] in "fbs" for token in self._tokens)

    def close(self, tokens: Sequence[str] = ()) -> int:
        """End the step with these events. Returns the number of its pattern (-1 if there are too many)."""
        if self._tokens or len(tokens) >= LONGEST:
            self.extend(tokens)
            tokens, self._tokens = self._tokens, []
        key = tuple(tokens)
        number = self._numbers.get(key)
        if number is None:
            text = "".join(fold(list(key)))
            number = self._known.get(text, -1)
            if number < 0 and len(self._known) < MOST_PATTERNS:
                number = self._known[text] = len(self._known)
                self._announce(number, text)
            if len(self._numbers) < MOST_PATTERNS:
                self._numbers[key] = number
        return number


def fold(tokens: list[str]) -> list[str]:
    """Write repeats once, with a `+`: d e d e d e becomes (de)+."""
    for width in (1, 2, 3, 4):
        tokens = _fold_width(tokens, width)
    return tokens


def _fold_width(tokens: list[str], width: int) -> list[str]:
    folded: list[str] = []
    at = 0
    while at < len(tokens):
        unit = tokens[at : at + width]
        label = unit[0].rstrip("+") + "+" if width == 1 else "(" + "".join(unit) + ")+"
        count = 1
        while tokens[at + count * width : at + (count + 1) * width] == unit:
            count += 1
        if folded and folded[-1] == label and len(unit) == width:
            at += count * width  # the run continues from a part that was folded before
        elif count > 1:
            folded.append(label)
            at += count * width
        else:
            folded.append(tokens[at])
            at += 1
    return folded
