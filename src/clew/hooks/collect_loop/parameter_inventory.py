"""Parameter inventory: which parameters are trained, by which optimizer, which are still at init, and layers
whose units are copies of one another."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor, nn

from clew.hooks.collect_layers.trained_models import ModelBook, Root, strip_wrappers, unwrap
from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.measure.deferred_values import on_host
from clew.measure.readable_tensors import has_values
from clew.measure.stats import STAT_NAMES, tensor_stats
from clew.records.facts.model_facts import ParameterRow, ParametersFact

UNIFORM_STD = 1 / math.sqrt(3)  # of a uniform distribution on (-1, 1)
TOLERANCE = 0.05  # relative error of a standard deviation over a few hundred elements
ALIKE = 1e-3  # difference between equal units, relative to the largest weight of a unit
FEWEST = 256  # with fewer elements a distribution cannot be recognised


def parameters_fact(root: Root, models: ModelBook, optimizers: OptimizerBook) -> ParametersFact | None:
    """The `parameters` fact of a root module (docs/signals.md)."""
    outer = root.module()
    if outer is None:
        return None
    module = unwrap(outer)
    owners = owners_of(optimizers)
    modules = {strip_wrappers(p): m for p, m in module.named_modules()}
    items = []
    for path, parameter in module.named_parameters():
        name = strip_wrappers(path)
        owner, _, leaf = name.rpartition(".")
        items.append(
            ParameterRow(
                name=name,
                module=owner,
                param=leaf,
                ndim=parameter.dim(),
                requires_grad=parameter.requires_grad,
                has_grad=parameter.grad is not None,
                optimizer=owners.get(id(parameter)),
                loaded=models.was_loaded(parameter),
                alike=units_alike(parameter),
                init_like=None if parameter.requires_grad else init_like(modules.get(owner), leaf, parameter),
            )
        )
    return ParametersFact(
        root=root.name,
        items=tuple(items),
        training=module.training,
        root_in_optimizer=any(item.optimizer is not None for item in items),
    )


def owners_of(optimizers: OptimizerBook) -> dict[int, int]:
    """Parameter id -> number of its optimizer, including optimizers that never stepped."""
    owners = {id(p): state.index for state in optimizers.states for p in state.params}
    for number, reference in enumerate(optimizers.created):
        optimizer = reference()
        for group in optimizer.param_groups if optimizer is not None else ():
            for parameter in group["params"]:
                owners.setdefault(id(parameter), number)
    return owners


def init_like(module: nn.Module | None, leaf: str, parameter: Tensor) -> bool | None:
    """Whether a weight still has the distribution of its layer's default initialisation.

    Linear and convolution layers draw from U(-b, b) with b = 1/sqrt(fan_in), embeddings from N(0, 1). Trained
    weights leave those bounds. None if it cannot be determined.
    """
    if leaf != "weight" or parameter.numel() < FEWEST or parameter.is_meta:
        return None
    row = np.zeros(len(STAT_NAMES))
    tensor_stats(parameter.detach(), out=row)
    mean, std, low, high = row[:4]
    if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)):
        fan_in = parameter[0].numel()
        bound = 1 / math.sqrt(fan_in)
        inside = max(-low, high) <= bound * 1.0001
        return bool(inside and abs(std / (bound * UNIFORM_STD) - 1) < TOLERANCE)
    if isinstance(module, nn.Embedding):
        return bool(abs(mean) < TOLERANCE and abs(std - 1) < TOLERANCE)
    return None


def units_alike(weight: Tensor) -> bool | None:
    """Whether the units of a layer have identical weights, based on four of them.

    None if there is nothing to compare, or if reading the weights would make the host wait.
    """
    if weight.dim() < 2 or not on_host(weight) or not has_values(weight) or weight.shape[0] < 2:
        return None
    if not weight.numel() or not weight.is_floating_point():
        return None
    return rows_alike(weight)


def rows_alike(weight: Tensor) -> bool:
    """Whether the rows of a weight with at least two rows are the same, based on four of them."""
    rows, count = weight.detach(), weight.shape[0]
    first = rows[0]
    # Sums in a different order let even perfect copies drift apart by rounding.
    bound = ALIKE * float(first.abs().max())
    return all(float((rows[n] - first).abs().max()) <= bound for n in {1, count // 2, count - 1})
