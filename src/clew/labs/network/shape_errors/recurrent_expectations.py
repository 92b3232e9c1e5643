"""What recurrent layers expect of their input and of their hidden state."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from clew.labs.network.shape_errors.mismatch import Mismatch, shape_text, sizes_text
from clew.measure.nested_tensors import tensors_in


def wrong_dimensions(layer: nn.RNNBase, x: Tensor) -> Mismatch | None:
    if x.dim() in (2, 3):
        return None
    order = "batch × time" if layer.batch_first else "time × batch"
    text = f"{type(layer).__name__} takes 3 dimensions, or 2 for a single sequence, got {x.dim()}"
    if x.dim() == 4 and x.shape[2] * x.shape[3] == layer.input_size:
        text += f": x.flatten(2) gives {sizes_text((*x.shape[:2], layer.input_size))}"
    return Mismatch("shape", f"{order} × {layer.input_size}", shape_text(x), text)


def wrong_state(layer: nn.RNNBase, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mismatch | None:
    """The hidden state against the input; of a packed sequence the batch is not looked up."""
    x, state = (args[0] if args else kwargs.get("input")), (args[1] if len(args) > 1 else kwargs.get("hx"))
    if not isinstance(x, Tensor) or state is None:
        return None
    layers = layer.num_layers * (2 if layer.bidirectional else 1)
    batch = () if x.dim() == 2 else (x.shape[0 if layer.batch_first else 1],)
    sizes = (layer.proj_size or layer.hidden_size, layer.hidden_size)
    for name, tensor, size in zip(("h", "c"), tensors_in(state), sizes, strict=False):
        wanted = (layers, *batch, size)
        if tuple(tensor.shape) != wanted:
            text = _state_words(layer, x, tensor, wanted)
            return Mismatch("shape", f"{name} of {sizes_text(wanted)}", shape_text(tensor), text)
    return None


def _state_words(layer: nn.RNNBase, x: Tensor, state: Tensor, wanted: tuple[int, ...]) -> str:
    shape = tuple(state.shape)
    text = f"{type(layer).__name__} takes its state as layers × batch × hidden"
    if len(wanted) < 3:
        return f"{text}; for a single sequence, without the batch"
    if layer.batch_first:
        text += ", also with batch_first=True"
    if shape == (wanted[1], wanted[0], wanted[2]):
        return f"{text}: transpose(0, 1) fixes it"
    other = x.shape[1 if layer.batch_first else 0]
    if shape == (wanted[0], other, wanted[2]):
        order = "batch × time" if layer.batch_first else "time × batch"
        return f"{text}; x is read as {order}, a batch of {wanted[1]}, but the state is for {other}"
    return text
