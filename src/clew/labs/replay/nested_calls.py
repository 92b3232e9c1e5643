"""The calls of modules inside each other, and which of them is to blame for a gradient."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from clew.labs.snapshot.users_step.replay_lines import Line


@dataclass(eq=False)
class Call:
    """One call of a module."""

    module: nn.Module
    above: Call | None  # the module that calls it
    inputs: list[Tensor] = field(default_factory=list)
    line: Line = (None, None)
    bad_inside: bool = False  # a part of it has put out something non-finite
    handed: tuple[Call, Tensor] | None = None  # the first part to be given it, and what it was given
    finite_gradients: bool = False  # came to its outputs
    bad_gradient: bool = False  # came to an output, or was made in it or in a part

    def spoil(self) -> None:
        """From here on no gradient of it is its own fault, nor one of those around it."""
        call: Call | None = self
        while call is not None:
            call.bad_gradient = True
            call = call.above

    @property
    def depth(self) -> int:
        return 0 if self.above is None else self.above.depth + 1

    @property
    def is_sound(self) -> bool:
        """Whether its gradients were finite until now."""
        return self.finite_gradients and not self.bad_gradient


@dataclass(eq=False)
class Edge:
    """A tensor between modules. Its gradient leaves those that it was given to, and comes to its makers."""

    made_by: list[Call] = field(default_factory=list)
    given_to: list[Call] = field(default_factory=list)

    def passed(self, bad: bool) -> Call | None:
        """A gradient has come; the call to blame if it is not finite."""
        if not bad:
            for call in self.made_by:
                call.finite_gradients = True
            return None
        to_blame = self._to_blame()
        if to_blame is not None:
            to_blame.spoil()
        for call in self.made_by:
            call.bad_gradient = True
        return to_blame

    def _to_blame(self) -> Call | None:
        """The innermost that it leaves; else the one around its maker, whose own code lies between."""
        leaves = [call for call in self.given_to if call.is_sound]
        if leaves:
            return max(leaves, key=lambda call: call.depth)
        if self.given_to:
            return None
        around = [call.above for call in self.made_by if call.above is not None]
        return next((call for call in around if call.is_sound and call not in self.made_by), None)
