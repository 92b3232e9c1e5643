"""Input tensors for a network: given as tensors, read from files, or created from shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.network.tensor_info import described
from clew.measure.nested_tensors import named_tensors, tensors_in
from clew.records.network import TensorInfo

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
EVEN = (2, 8, 32)  # made-up sizes are multiples of this if odd ones fail: a U-Net halves a few times
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_DENSE = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase)


class BadInputError(ValueError):
    """Input that can't be used; the message is one clear line."""


@dataclass(frozen=True)
class Shape:
    """A tensor to be created. Sizes may be names."""

    sizes: tuple[int | str, ...]
    dtype: torch.dtype | None = None


@dataclass
class ForwardInputs:
    """Arguments for a forward, and which of their sizes have names."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # of the named dimensions
    names: dict[int, tuple[str | None, ...]] = field(default_factory=dict)  # by id of the tensor
    invented: tuple[str, ...] = ()  # names whose sizes were not given
    arguments: tuple[str, ...] = ()  # the forward's names for its positional arguments

    def name_of(self, size: int) -> str | None:
        """A plain number equal to the size that the user gave to a name counts as that name."""
        given = (n for n, known in self.sizes.items() if known == size and n not in self.invented)
        return next(given, None)

    def labelled(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor, with the forward's name for it; a single argument is the input."""
        for number, value in enumerate(self.args):
            known = self.arguments[number] if number < len(self.arguments) else f"input {number}"
            yield from named_tensors(known if len(self.args) + len(self.kwargs) > 1 else "input", value)
        for name, value in self.kwargs.items():
            yield from named_tensors(name, value)

    def described(self) -> Iterator[tuple[str, TensorInfo]]:
        """The same without values, and with the names that sizes have."""
        for label, tensor in self.labelled():
            info = described(tensor)
            names = self.names.get(id(tensor), ())
            written = tuple(n or str(s) for n, s in zip(names, info.shape, strict=False))
            yield label, replace(info, dims=written)


def arguments_of(function: Any) -> tuple[str, ...]:
    """The names of its positional arguments, as far as known."""
    return tuple(p.name for p in parameters_of(function) if p.kind in POSITIONAL)


def parameters_of(function: Any) -> list[Parameter]:
    """The parameters in its signature; none if it has no signature."""
    try:
        return list(signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def forward_inputs(
    model: nn.Module,
    inputs: Any,
    *,
    dims: Mapping[str, int | None] | Sequence[str] | None = None,
    dtype: torch.dtype | None = None,
    factor: int = 1,
) -> ForwardInputs:
    """Arguments from what the user gave: one input, several, or a dict of keyword inputs.

    Made-up sizes are multiples of `factor`.
    """
    sizes, invented = _sizes(model, inputs, dims, factor)
    made = ForwardInputs(sizes=sizes, invented=invented, arguments=arguments_of(model.forward))
    args, kwargs = _split(inputs)
    made.args = tuple(_value(model, made, a, dtype) for a in args)
    made.kwargs = {name: _value(model, made, a, dtype) for name, a in kwargs.items()}
    return made


def _split(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if inputs is None:
        return (), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (Tensor, Shape)) or is_shape(inputs) or not isinstance(inputs, (list, tuple)):
        return (inputs,), {}
    parts = list(inputs)
    if (
        parts
        and isinstance(parts[-1], dict)
        and all(isinstance(k, str) for k in parts[-1])
        and len(parts) > 1
    ):
        return tuple(parts[:-1]), parts[-1]
    return tuple(parts), {}


def is_shape(value: Any) -> bool:
    """A tuple of sizes and names of sizes, not a tuple of tensors."""
    return (
        isinstance(value, (tuple, list, torch.Size))
        and bool(value)
        and all(type(v) is int or isinstance(v, str) for v in value)
    )


def _shapes(inputs: Any) -> Iterator[Shape]:
    args, kwargs = _split(inputs)
    for value in (*args, *kwargs.values()):
        if isinstance(value, Shape):
            yield value
        elif is_shape(value):
            yield Shape(tuple(value))


def _literal_sizes(inputs: Any) -> Iterator[int]:
    for shape in _shapes(inputs):
        yield from (s for s in shape.sizes if isinstance(s, int))
    for tensor in tensors_in(_split(inputs)):
        yield from tensor.shape


def _sizes(model: nn.Module, inputs: Any, dims: Any, factor: int) -> tuple[dict[str, int], tuple[str, ...]]:
    """A size for every name; unset ones get primes that the model does not use, so that mix-ups show."""
    wanted: dict[str, int | None] = dict(dims) if isinstance(dims, Mapping) else dict.fromkeys(dims or ())
    for shape in _shapes(inputs):
        wanted.update({s: None for s in shape.sizes if isinstance(s, str) and s not in wanted})
    taken = {n for p in model.parameters() for n in p.shape} | {n for n in wanted.values() if n}
    taken |= set(_literal_sizes(inputs))
    free = (p * factor for p in _PRIMES if p * factor not in taken)
    sizes: dict[str, int] = {}
    for name, size in wanted.items():
        sizes[name] = next(free, 0) if size is None else int(size)
        if sizes[name] < 1:
            raise BadInputError(f"a size must be at least 1: {name}={sizes[name]}")
    if len(set(sizes.values())) < len(sizes):
        raise BadInputError("give each dimension a different size: equal sizes can't be told apart")
    return sizes, tuple(name for name, size in wanted.items() if size is None)


def _value(model: nn.Module, made: ForwardInputs, given: Any, dtype: torch.dtype | None) -> Any:
    if is_shape(given):
        given = Shape(tuple(given))
    if isinstance(given, Shape):
        names = tuple(s if isinstance(s, str) else made.name_of(s) for s in given.sizes)
        sizes = [made.sizes[s] if isinstance(s, str) else s for s in given.sizes]
        if min(sizes, default=1) < 0:
            raise BadInputError(f"a size can't be negative: {sizes}")
        given = make_tensor(model, sizes, given.dtype or dtype)
        made.names[id(given)] = names
    else:
        for tensor in tensors_in(given):
            made.names[id(tensor)] = tuple(made.name_of(s) for s in tensor.shape)
    return given


def make_tensor(model: nn.Module, sizes: Sequence[int], dtype: torch.dtype | None) -> Tensor:
    """Random values of the dtype the model seems to expect; the user's generators are not touched."""
    device, floating = _home(model)
    dtype = dtype or (torch.int64 if takes_indices(model) else floating)
    if device.type == "meta":
        return torch.empty(tuple(sizes), dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(tuple(sizes), generator=generator).to(device=device, dtype=dtype)
    if dtype is torch.bool:
        return torch.ones(tuple(sizes), dtype=dtype, device=device)
    most = min((m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)), default=2)
    return torch.randint(0, max(min(most, 100), 1), tuple(sizes), generator=generator).to(device, dtype)


def _home(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.get_default_dtype()


def takes_indices(model: nn.Module) -> bool:
    """Whether an embedding comes before any layer that takes floating-point input."""
    for module in model.modules():
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            return True
        if isinstance(module, _DENSE):
            return False
    return False


def dtype_of(name: str) -> torch.dtype:
    found = getattr(torch, name.strip(), None)
    if not isinstance(found, torch.dtype):
        raise BadInputError(f"torch has no dtype {name!r}; use float32, float16, bfloat16, int64, bool, …")
    return found


def parse_input(text: str) -> tuple[str | None, Any]:
    """Keyword and input: `4,3,32,32`, `batch,time:int64`, `mask=4,17:bool`, `x.npy`, `ids=a.safetensors`."""
    keyword, equals, rest = text.partition("=")
    keyword, rest = (keyword.strip(), rest) if equals else ("", text)
    if equals and not keyword.isidentifier():
        raise BadInputError(f"{keyword!r} is not a valid keyword name")
    if rest.endswith((".npy", ".safetensors")) or Path(rest).suffix:
        return keyword or None, read_tensors(Path(rest))
    sizes, _, dtype = rest.partition(":")
    return keyword or None, Shape(
        tuple(_size(s) for s in sizes.split(",")), dtype_of(dtype) if dtype else None
    )


def arrange_inputs(model: nn.Module, parts: Sequence[tuple[str | None, Any]]) -> Any:
    """Positional inputs, then keyword ones, as `summary` takes them.

    A file with several tensors is split if all their names are arguments of the forward;
    else it is one input, a dict.
    """
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for keyword, value in parts:
        if keyword is not None:
            named[keyword] = value
        elif isinstance(value, dict) and _are_arguments(model.forward, value):
            named.update(value)
        else:
            positional.append(value)
    if named and not positional:
        return named
    return [*positional, named] if named else positional


def _are_arguments(function: Any, names: Mapping[str, Any]) -> bool:
    parameters = parameters_of(function)
    if any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        return True
    by_name = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return set(names) <= {p.name for p in parameters if p.kind in by_name}


def _size(text: str) -> int | str:
    text = text.strip()
    if text.lstrip("-").isdigit():
        if int(text) < 0:
            raise BadInputError(f"a size can't be negative: {text}")
        return int(text)
    if text.isidentifier():
        return text
    raise BadInputError(f"{text!r} is not a size; write a shape as 4,3,32,32 or batch,3,32,32")


def read_tensors(path: Path) -> Any:
    """A tensor from a `.npy` or `.safetensors` file: formats that can't contain code."""
    if not path.is_file():
        raise BadInputError(f"no such file: {path}")
    try:
        if path.suffix == ".npy":
            import numpy as np

            return torch.from_numpy(np.load(path, allow_pickle=False))
        if path.suffix == ".safetensors":
            return _from_safetensors(path)
    except (ValueError, OSError, EOFError, TypeError) as error:
        raise BadInputError(f"{path} can't be read: {error}") from error
    raise BadInputError(f"{path}: inputs must be .npy or .safetensors files")


def _from_safetensors(path: Path) -> Any:
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise BadInputError(".safetensors files need a package: pip install safetensors") from error
    try:
        found = load_file(path)
    except SafetensorError as error:
        raise BadInputError(f"{path} can't be read: {error}") from error
    return next(iter(found.values())) if len(found) == 1 else found
