"""The same network with wider hidden layers, put in place of the narrow ones for the time of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from clew.labs.snapshot.step_batch import Batch
from clew.labs.snapshot.step_snapshot import StepSnapshot
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
CARRIERS = (nn.Linear, *CONVOLUTIONS, nn.RNNBase, nn.Embedding, nn.EmbeddingBag)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
OPTIONS = ("kernel_size", "stride", "padding", "output_padding", "dilation", "groups", "padding_mode")


def hidden_width(layers: list[tuple[str, nn.Module]]) -> int:
    """The narrowest layer but for the last."""
    widths = [_width(module) for _, module in layers[:-1] if isinstance(module, CARRIERS)]
    return min(widths, default=0)


def order_of_layers(subject: Subject, snapshot: StepSnapshot, batch: Batch) -> list[tuple[str, nn.Module]]:
    """Layers that could be widened, in the order in which the step runs them; raises if others are there."""
    model = subject.model
    called: dict[str, nn.Module] = {}
    handles = [
        module.register_forward_hook(_noting(called, name))
        for name, module in model.named_modules()
        if not list(module.children())
    ]
    try:
        snapshot.loss(batch)
    finally:
        for handle in handles:
            handle.remove()
    found = [(n, m) for n, m in called.items() if next(m.parameters(recurse=False), None) is not None]
    strange = [type(m).__name__ for _, m in found if not isinstance(m, (*CARRIERS, *NORMS))]
    known = {id(p) for _, m in found for p in m.parameters(recurse=False)}
    if strange or any(id(p) not in known for p in model.parameters()):
        raise CannotJudge(
            f"a wider copy can't be built: {(strange or ['its own parameters'])[0]} can't be widened"
        )
    if sum(isinstance(m, CARRIERS) for _, m in found) < 2:
        raise CannotJudge("there is no hidden layer to make wider")
    return found


def widen(subject: Subject, layers: list[tuple[str, nn.Module]], factor: int) -> None:
    """All widths times `factor`, but for the first input and the last output. Only inside a snapshot."""
    carriers = [m for _, m in layers if isinstance(m, CARRIERS)]
    begun = False
    for path, module in layers:
        first, last = module is carriers[0], module is carriers[-1]
        begun = begun or first
        if not begun:
            continue  # a normalisation of the input
        if isinstance(module, NORMS) and carriers[-1] in [
            m for _, m in layers[: layers.index((path, module))]
        ]:
            continue  # of the output
        wider = _wider(module, 1 if first else factor, 1 if last else factor)
        wider.train(module.training)
        parent, _, name = path.rpartition(".")
        owner = subject.model.get_submodule(parent) if parent else subject.model
        owner._modules[name] = wider.to(next(module.parameters()))


def _wider(module: Any, inside: int, outside: int) -> nn.Module:
    if isinstance(module, nn.Linear):
        return nn.Linear(module.in_features * inside, module.out_features * outside, module.bias is not None)
    if isinstance(module, CONVOLUTIONS):
        options = {name: getattr(module, name) for name in OPTIONS if hasattr(module, name)}
        if not type(module).__name__.startswith("ConvT"):
            options.pop("output_padding", None)
        kind: Any = type(module)
        made: nn.Module = kind(
            module.in_channels * inside,
            module.out_channels * outside,
            bias=module.bias is not None,
            **options,
        )
        return made
    if isinstance(module, nn.RNNBase):
        return _wider_recurrent(module, inside, outside)
    if isinstance(module, nn.Embedding):
        return nn.Embedding(module.num_embeddings, module.embedding_dim * outside, module.padding_idx)
    if isinstance(module, nn.EmbeddingBag):
        return nn.EmbeddingBag(module.num_embeddings, module.embedding_dim * outside, mode=module.mode)
    return type(module)(module.num_features * outside, affine=module.affine)  # type: ignore[no-any-return]


def _wider_recurrent(module: Any, inside: int, outside: int) -> nn.Module:
    if module.proj_size:
        raise CannotJudge("a wider copy can't be built: the recurrent layer projects its output")
    made: nn.Module = type(module)(
        module.input_size * inside,
        module.hidden_size * outside,
        module.num_layers,
        bias=module.bias,
        batch_first=module.batch_first,
        dropout=module.dropout,
        bidirectional=module.bidirectional,
    )
    return made


def _width(module: Any) -> int:
    for name in ("out_features", "out_channels", "hidden_size", "embedding_dim"):
        if hasattr(module, name):
            return int(getattr(module, name))
    return 0


def _noting(called: dict[str, nn.Module], name: str) -> Callable[..., None]:
    def noted(module: nn.Module, *_: Any) -> None:
        called.setdefault(name, module)

    return noted
