"""Which optimizer step ends a training step, in a program with several optimizers."""

from __future__ import annotations

from collections.abc import Callable


class Cycle:
    """Learns the order in which optimizers step, by their numbers.

    With one optimizer, each of its steps ends a training step. With several (a GAN), the last of them ends
    it; which one is last is known as soon as the first has stepped again. An optimizer takes over when it
    steps twice while the known ones don't, or when the first no longer exists: a second training has begun.
    """

    def __init__(self, exists: Callable[[int], bool] = lambda index: True) -> None:
        self._exists = exists
        self.lead: int | None = None
        self.only: int | None = None  # the lead while no other is known: each of its steps ends a step
        self._closer: int | None = None
        self._others: list[int] = []  # those that stepped since the lead did, in order
        self._lead_steps = 0  # since the closer's last step
        self._most_lead_steps = 1

    def ends_with(self, index: int) -> bool:
        """An optimizer stepped: whether that ends the training step."""
        if self._closer is not None:
            return self._known_cycle(index, self._closer)
        if self.lead is None or index == self.lead:
            if self._others:  # the lead stepped again: from now on the last of the others closes the step
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
