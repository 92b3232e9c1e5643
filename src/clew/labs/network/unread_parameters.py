"""Parameters that no op in a forward reads: the `graph` fact without training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from clew.labs.network.trace.layer_lines import named_elsewhere
from clew.labs.network.trace.op_tracer import ForwardTrace
from clew.records.facts.model_facts import GraphFact
from clew.records.network import INPUT


def graph_fact(model: nn.Module, trace: ForwardTrace, root: str) -> GraphFact:
    """What was read and what was not (docs/signals.md); of gradients nothing is known."""
    read = {p for op in trace.ops for p in op.parameters}
    given_back = {t.shape for t, op in zip(trace.outputs, trace.makers, strict=True) if op == INPUT}
    idle = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
        and id(parameter) not in read
        and tuple(parameter.shape) not in given_back  # it may be part of the result as it is
        and not _scripted(model, name)
    ]
    return GraphFact(
        root=root,
        reached=len(read),
        idle=tuple(idle),
        forward_only=True,
        named=tuple(name for name in idle if _named(model, trace, name)),
    )


def _scripted(model: nn.Module, name: str) -> bool:
    """TorchScript reads the weights of its modules where nobody sees whose they are."""
    return any(isinstance(m, torch.jit.ScriptModule) for m, _ in _way_to(model, name))


def _named(model: nn.Module, trace: ForwardTrace, name: str) -> bool:
    """Whether the code mentions what holds a parameter: a discriminator beside the forward, say."""
    ran = {id(call.module) for call in trace.calls}
    holder, attribute = model, name
    for module, below in _way_to(model, name):
        if not below.isdigit() and not type(module).__module__.startswith("torch."):
            holder, attribute = module, below
        inner = getattr(module, below, None)
        if isinstance(inner, nn.Module) and id(inner) not in ran and not below.isdigit():
            break
    return named_elsewhere(type(holder), attribute)


def _way_to(model: nn.Module, name: str) -> list[tuple[nn.Module, str]]:
    """The modules on the way to a parameter, each with the attribute that leads on."""
    way: list[tuple[nn.Module, str]] = []
    module: Any = model
    for part in name.split("."):
        way.append((module, part))
        module = getattr(module, part, None)
        if not isinstance(module, nn.Module):
            break
    return way
