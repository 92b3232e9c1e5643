"""When a step of the program ends, if it has several optimizers."""

from __future__ import annotations

from collections.abc import Callable


class Cycle:
    """Learns the order in which optimizers step, by their numbers.

    With one optimizer each of its steps ends a step. With several (a GAN) the step ends with the
    last of them, as soon as the first has come round again and told which one is the last. An
    optimizer that steps twice while the known ones rest, or when the first no longer exists, takes
    over: a second fit has begun.
    """

    def __init__(self, exists: Callable[[int], bool] = lambda index: True) -> None:
        self._exists = exists
        self.lead: int | None = None
        self.only: int | None = None  # the lead, as long as no other is known: each of its steps ends one
        self._closer: int | None = None
        self._others: list[int] = []  # that stepped since the lead did, in order
        self._lead_steps = 0  # since the closer's last
        self._most_lead_steps = 1

    def ends_with(self, index: int) -> bool:
        """An optimizer stepped: does that end the program's step?"""
        if self._closer is not None:
            return self._known_cycle(index, self._closer)
        if self.lead is None or index == self.lead:
            if self._others:  # the lead came round: the last of the others closes from now on
                self._closer = self._others[-1]
                self._others = []
                self._lead_steps = 1
                return False
            self.lead = self.only = index
            return True
        return self._stranger(index)

    def _known_cycle(self, index: int, closer: int) -> bool:
        if index == closer:
            self._most_lead_steps = max(self._most_lead_steps, self._lead_steps)
            self._lead_steps = 0
            self._others = []
            return True
        if index != self.lead:
            return self._stranger(index)
        self._lead_steps += 1
        if self._lead_steps > 2 * self._most_lead_steps + 2:  # the closer has stopped stepping
            self._take_over(index)
            return True
        return False

    def _stranger(self, index: int) -> bool:
        if index in self._others or (self.lead is not None and not self._exists(self.lead)):
            self._take_over(index)
            return True
        self._others.append(index)
        self.only = None
        return False

    def _take_over(self, index: int) -> None:
        self.lead = self.only = index
        self._closer = None
        self._others = []
        self._lead_steps = 0
        self._most_lead_steps = 1
