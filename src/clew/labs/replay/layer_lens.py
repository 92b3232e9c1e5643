"""The coarse lens: checks only the inputs and outputs of modules, at a fraction of the cost.

A module produces a non-finite value if its inputs and its submodules' outputs are finite: then
its own code did it. What it passes to a submodule counts as its own product, too.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from clew.labs.snapshot.nonfinite_values import (
    Culprit,
    bad_indices,
    bad_rows,
    is_bad,
    kind_in_words,
    result_kind,
    stats_of,
)
from clew.labs.snapshot.op_recorder import ModulePaths, module_hooks
from clew.labs.snapshot.users_step.replay_lines import code_at, in_replay, line_now
from clew.measure.nested_tensors import tensors_in
from clew.records.site import Line

_FIX = "trace with level='op' to see which operation inside it produces the value"


class LayerLens:
    """Hooks on all modules: which one turns finite inputs into a non-finite output or gradient?"""

    def __init__(self, roots: dict[str, nn.Module]) -> None:
        self.culprits: list[Culprit] = []
        self._paths = ModulePaths(roots)
        self._anonymous = not roots
        self._running: list[NestedCall] = []  # the innermost last
        self._edges: Any = WeakIdKeyDictionary()  # the tensors between modules, for their gradients
        self._again = False  # a step is being replayed
        self._known: list[Tensor] = []
        self._hooks = contextlib.ExitStack()

    def __enter__(self) -> LayerLens:
        self._hooks.enter_context(module_hooks(self._before, self._after, with_kwargs=True))
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()
        self._running = []

    def _before(self, module: nn.Module, args: Any) -> None:
        outermost = not self._running
        if outermost:
            self._again = in_replay()
        if self._anonymous and outermost and not self._paths.knows(module):
            self._paths.add(type(module).__name__, module)
        if outermost and not self._again:
            self._check_inputs(args)
        self._running.append(NestedCall(module, None if outermost else self._running[-1]))

    def _check_inputs(self, args: Any) -> None:
        for number, tensor in enumerate(tensors_in(args)):
            if is_bad(tensor) and not any(tensor is known for known in self._known):
                self._known.append(tensor)
                kind = kind_in_words(result_kind(tensor))
                indices, count = bad_indices(tensor)
                self.culprits.append(
                    Culprit(
                        phase="batch",
                        op=f"input[{number}]",
                        result=result_kind(tensor),
                        why=f"the model's input contains {kind}: input[{number}]",
                        fix="check where it comes from: the data, or an earlier computation",
                        inputs=(stats_of(f"input[{number}]", tensor),),
                        elements=indices,
                        elements_of=f"input[{number}]",
                        bad_count=count,
                        element_count=count,
                        samples=bad_rows(tensor),
                    )
                )

    def _after(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        while self._running and self._running[-1].module is not module:
            self._running.pop()  # an exception ended it
        if not self._running:
            return
        call = self._running.pop()
        if self._again:
            return  # already reported
        call.inputs, outputs = tensors_in((args, kwargs)), tensors_in(output)
        call.line = line_now()
        bad_inputs = [t for t in call.inputs if is_bad(t)]
        bad = [t for t in outputs if is_bad(t)]
        if bad:
            self._judge_forward(call, bad_inputs, bad[0])
        self._watch_gradients(call, outputs)

    def _judge_forward(self, call: NestedCall, bad_inputs: list[Tensor], bad: Tensor) -> None:
        """A module's output is not finite: is that its own fault, its input's, or a submodule's?"""
        above = call.above
        if not bad_inputs and not call.bad_inside:
            self._note(call, "forward", bad)
        elif above is not None and bad_inputs and not above.bad_inside:
            above.first_bad_input = above.first_bad_input or (call, bad_inputs[0])
        if above is not None:
            above.bad_inside = True
        # A submodule's input is the module's own product only if it was not the module's input.
        if call.first_bad_input is not None and not bad_inputs:
            part, made = call.first_bad_input
            self._note(call, "forward", made, part)

    # -- backward --

    def _watch_gradients(self, call: NestedCall, outputs: list[Tensor]) -> None:
        own = {id(t) for t in call.inputs}
        if any(id(t) in own for t in outputs):
            return  # passes its input through: both gradients are the same
        for tensor in outputs:
            if tensor.grad_fn is not None:
                self._edge(tensor).made_by.append(call)
        for tensor in call.inputs:
            if tensor.requires_grad:
                self._edge(tensor).given_to.append(call)

    def _edge(self, tensor: Tensor) -> CallEdge:
        edge: CallEdge | None = self._edges.get(tensor)
        if edge is None:
            edge = self._edges[tensor] = CallEdge()
            tensor.register_hook(lambda gradient: self._gradient(edge, gradient))
        return edge

    def _gradient(self, edge: CallEdge, gradient: Tensor) -> None:
        bad = is_bad(gradient)
        to_blame = edge.passed(bad)
        if to_blame is not None:
            self._note(to_blame, "backward", gradient)

    # -- what is reported --

    def _note(self, call: NestedCall, phase: str, bad: Tensor, part: NestedCall | None = None) -> None:
        root, path = self._paths.of(call.module)
        indices, count = bad_indices(bad)
        kind = type(call.module).__name__
        what = "gradient" if phase == "backward" else "output"
        inside = " and come out of its submodules" if next(call.module.children(), None) is not None else ""
        why = f"finite values go into this {kind}{inside}, but its {what} is non-finite"
        if part is not None:
            name = self._paths.of(part.module)[1] or type(part.module).__name__
            what = f"its gradient for {name}"
            why = f"finite values go into this {kind}, but {what} is non-finite"
        first = call.inputs[0].shape[:1] if call.inputs else ()
        self.culprits.append(
            Culprit(
                phase=phase,
                op=kind,
                result=result_kind(bad),
                why=why,
                fix=_FIX,
                module=path,
                root=root,
                file=call.line[0],
                line=call.line[1],
                code=code_at(call.line),
                inputs=tuple(stats_of(f"input {n}", t) for n, t in enumerate(call.inputs[:4])),
                elements=indices if indices[:1] != ((),) else (),
                elements_of=what if part is not None else f"the {what}",
                bad_count=count,
                element_count=count,
                samples=bad_rows(bad) if bad.shape[:1] == first and bad.dim() else (),
            )
        )


@dataclass(eq=False)
class NestedCall:
    """One call of a module."""

    module: nn.Module
    above: NestedCall | None  # the module that calls it
    inputs: list[Tensor] = field(default_factory=list)
    line: Line = (None, None)
    bad_inside: bool = False  # a submodule returned something non-finite
    first_bad_input: tuple[NestedCall, Tensor] | None = (
        None  # the first submodule with a bad input, and that input
    )
    finite_gradients: bool = False  # reached its outputs
    bad_gradient: bool = False  # reached an output, or was produced in it or in a submodule

    def spoil(self) -> None:
        """From now on none of its gradients is its own fault, nor that of the modules around it."""
        call: NestedCall | None = self
        while call is not None:
            call.bad_gradient = True
            call = call.above

    @property
    def depth(self) -> int:
        return 0 if self.above is None else self.above.depth + 1

    @property
    def is_sound(self) -> bool:
        """Whether its gradients have been finite so far."""
        return self.finite_gradients and not self.bad_gradient


@dataclass(eq=False)
class CallEdge:
    """A tensor between modules. Its gradient leaves its consumers and reaches its producers."""

    made_by: list[NestedCall] = field(default_factory=list)
    given_to: list[NestedCall] = field(default_factory=list)

    def passed(self, bad: bool) -> NestedCall | None:
        """A gradient has arrived; returns the call to blame if it is not finite."""
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

    def _to_blame(self) -> NestedCall | None:
        """The innermost call that it leaves; else the one around its producer, whose own code is between."""
        leaves = [call for call in self.given_to if call.is_sound]
        if leaves:
            return max(leaves, key=lambda call: call.depth)
        if self.given_to:
            return None
        around = [call.above for call in self.made_by if call.above is not None]
        return next((call for call in around if call.is_sound and call not in self.made_by), None)
