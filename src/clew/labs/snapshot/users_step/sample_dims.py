"""The batch dimension of each tensor in a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from clew.labs.snapshot.step_batch import BOTH, INPUT, TARGET

TIME_FIRST = (nn.RNNBase, nn.MultiheadAttention, nn.Transformer)  # unless they say `batch_first`


def sample_dims(
    batches: Sequence[Sequence[Tensor]],
    roles: Sequence[str],
    models: Iterable[nn.Module],
    batch_size: int | None,
    constant: Sequence[bool],
) -> tuple[int | None, ...]:
    """The batch dimension of each tensor of the batches (which are alike); None if it has none.

    `constant` are tensors that are the same objects in every batch, such as class weights.
    """
    main = _main(batches, roles, constant)
    if main is None:
        return tuple(None for _ in roles)
    dim = _of_main([b[main] for b in batches], batches, roles, models, batch_size)
    sizes = [int(b[main].shape[dim]) for b in batches]
    return tuple(
        None if constant[n] and not constant[main] else _alike([b[n] for b in batches], sizes, dim)
        for n in range(len(roles))
    )


def _main(batches: Sequence[Sequence[Tensor]], roles: Sequence[str], constant: Sequence[bool]) -> int | None:
    """The tensor that the batch size is read from: the first input that changes."""
    ranked = [
        (constant[n], role not in (INPUT, BOTH), role != TARGET, n)
        for n, role in enumerate(roles)
        if all(b[n].dim() for b in batches)
    ]
    return min(ranked)[-1] if ranked else None


def _of_main(
    tensors: Sequence[Tensor],
    batches: Sequence[Sequence[Tensor]],
    roles: Sequence[str],
    models: Iterable[nn.Module],
    batch_size: int | None,
) -> int:
    if min(t.dim() for t in tensors) < 2:
        return 0
    if batch_size is not None:
        fitting = [d for d in (0, 1) if _usual(tensors, d) == batch_size]
        if len(fitting) == 1:
            return fitting[0]
    labels = [n for n, role in enumerate(roles) if role == TARGET and batches[0][n].dim() == 1]
    lengths = [int(b[n].shape[0]) for b in batches for n in labels]
    if len(lengths) == len(tensors):
        fitting = [d for d in (0, 1) if [int(t.shape[d]) for t in tensors] == lengths]
        if len(fitting) == 1:
            return fitting[0]
    if batch_size is not None and _usual(tensors, 0) == batch_size:
        return 0
    return 1 if _takes_time_first(models) else 0


def _usual(tensors: Sequence[Tensor], dim: int) -> int:
    """The size of most batches: the last one of an epoch may be smaller."""
    return Counter(int(t.shape[dim]) for t in tensors).most_common(1)[0][0]


def _takes_time_first(models: Iterable[nn.Module]) -> bool:
    layers = [m for model in models for m in model.modules() if isinstance(m, TIME_FIRST)]
    return bool(layers) and not any(getattr(m, "batch_first", False) for m in layers)


def _alike(tensors: Sequence[Tensor], sizes: Sequence[int], dim: int) -> int | None:
    """The dimension whose sizes match those of the batches; if several do, the inputs' batch dimension."""
    fitting = [
        d
        for d in dict.fromkeys((dim, 0, 1))
        if all(t.dim() > d and int(t.shape[d]) == size for t, size in zip(tensors, sizes, strict=True))
    ]
    return fitting[0] if fitting else None
