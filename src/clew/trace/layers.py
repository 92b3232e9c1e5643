"""The coarse lens: only what goes in and out of modules is checked, at a fraction of the cost."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.modules import module as hooks

from clew.trace.held import Culprit
from clew.trace.lines import Line, code_at, line_now
from clew.trace.sight import bad_indices, bad_rows, is_bad, result_kind, stats_of, tensors_of

_FIX = "trace with level='op' to see which operation inside it makes the value"


class LayerLens:
    """Hooks on all modules: which one makes a non-finite output, or gradient, out of finite ones?"""

    def __init__(self, roots: dict[str, nn.Module]) -> None:
        self.culprits: list[Culprit] = []
        self._paths = {id(m): (root, path) for root, top in roots.items() for path, m in top.named_modules()}
        self._anonymous = not roots
        self._depth = 0
        self._known: list[Tensor] = []
        self._handles: list[Any] = []

    def __enter__(self) -> LayerLens:
        self._handles = [
            hooks.register_module_forward_pre_hook(self._before),
            hooks.register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
            hooks._global_forward_hooks_always_called.pop(handle.id, None)
        self._handles = []

    def _before(self, module: nn.Module, args: Any) -> None:
        self._depth += 1
        if self._anonymous and self._depth == 1 and id(module) not in self._paths:
            name = type(module).__name__
            self._paths.update({id(m): (name, path) for path, m in module.named_modules()})
        if self._depth == 1:
            self._look_at_inputs(args)

    def _look_at_inputs(self, args: Any) -> None:
        for number, tensor in enumerate(tensors_of(args)):
            if is_bad(tensor) and not any(tensor is known for known in self._known):
                self._known.append(tensor)
                kind = "NaN" if result_kind(tensor) == "nan" else "infinite values"
                indices, count = bad_indices(tensor)
                self.culprits.append(
                    Culprit(
                        phase="batch",
                        op=f"input[{number}]",
                        result=result_kind(tensor),
                        why=f"what the model is given holds {kind}: input[{number}]",
                        fix="look at where it comes from: the data, or what was computed before",
                        inputs=(stats_of(f"input[{number}]", tensor),),
                        elements=indices,
                        elements_of=f"input[{number}]",
                        bad_count=count,
                        samples=bad_rows(tensor),
                    )
                )

    def _after(self, module: nn.Module, args: Any, output: Any) -> None:
        self._depth = max(self._depth - 1, 0)
        inputs, outputs = list(tensors_of(args)), list(tensors_of(output))
        line = line_now(2)
        bad = [t for t in outputs if is_bad(t)]
        if bad and not any(is_bad(t) for t in inputs) and not next(module.children(), None):
            self._note(module, "forward", line, inputs, bad[0])
        self._watch_gradients(module, line, inputs, outputs)

    def _watch_gradients(
        self, module: nn.Module, line: Line, inputs: list[Tensor], outputs: list[Tensor]
    ) -> None:
        if next(module.children(), None) is not None:
            return
        arrived: list[bool] = []

        def came(gradient: Tensor) -> None:
            arrived.append(is_bad(gradient))

        def left(gradient: Tensor) -> None:
            if arrived and not any(arrived) and is_bad(gradient):
                self._note(module, "backward", line, inputs, gradient)

        own = {id(t) for t in inputs}
        if any(id(t) in own for t in outputs):
            return  # passes its input through: its two gradients are one
        for tensor in outputs:
            if tensor.grad_fn is not None:
                tensor.register_hook(came)
        for tensor in inputs:
            if tensor.requires_grad:
                tensor.register_hook(left)

    def _note(self, module: nn.Module, phase: str, line: Line, inputs: list[Tensor], bad: Tensor) -> None:
        root, path = self._paths.get(id(module), (None, None))
        indices, count = bad_indices(bad)
        kind = type(module).__name__
        what = "gradient" if phase == "backward" else "output"
        self.culprits.append(
            Culprit(
                phase=phase,
                op=kind,
                result=result_kind(bad),
                why=f"finite values go into this {kind}, and its {what} is not finite",
                fix=_FIX,
                module=path,
                root=root,
                file=line[0],
                line=line[1],
                code=code_at(line),
                inputs=tuple(stats_of(f"input {n}", t) for n, t in enumerate(inputs[:4])),
                elements=indices,
                elements_of=f"the {what}",
                bad_count=count,
                samples=bad_rows(bad) if inputs and bad.shape[:1] == inputs[0].shape[:1] else (),
            )
        )
