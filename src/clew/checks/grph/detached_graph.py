"""GRPH002 detached-graph

## What it detects
Layers that run in the forward pass and are in an optimizer, but never get a gradient, because something
between them and the loss cuts the graph: `.detach()`, `.data`, `.numpy()`, `.item()`, `torch.tensor(x)`
or a `no_grad` block; and losses without any autograd history (no `grad_fn`).

## Why is this bad?
Everything before the cut keeps its initial weights; only what comes after it learns. With a loss
that has no `grad_fn`, nothing learns.

## How to fix
Use only tensors and differentiable functions from the input to the loss: remove the `detach()` or
`no_grad`, replace NumPy by torch functions, and never wrap a tensor in `torch.tensor(...)`. Setting
`requires_grad` on the loss hides the error message, not the error.

## Known problems
Training on top of features that are detached on purpose is reported: freeze those layers with
`requires_grad_(False)`, or keep them out of the optimizer. Loaded layers that run under `no_grad` are
not reported.

## References
- PyTorch docs, autograd mechanics: locally disabling gradient computation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loop_facts import graphs
from clew.checks.evidence.parameter_holders import holders, never_trained
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records import signals
from clew.records.facts.loss_facts import LossCutFact
from clew.records.facts.model_facts import GraphFact, ParameterRow
from clew.records.facts.run_facts import IdleFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted
from clew.records.site import Site

LOGGING = ("item", "tolist")  # usually for a number to print, so the last to be suspected
NO_GRAD = "does not require grad"  # torch's words when backward() is called on such a loss


@dataclass(frozen=True)
class DetachedGraph(Check):
    id = "GRPH002"
    name = "detached-graph"
    withdrawal = "the layers have had gradients since then"
    needs = (any_of(GraphFact, LossCutFact, IdleFact),)

    groups = ("wiring-faults",)
    from_the_start = True

    turns: int = 50  # steps in which a whole model may wait for its turn; a critic is trained first

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        cut_losses = list(self._cut_losses(run))
        yield from cut_losses
        if not cut_losses:
            known = graphs(run)
            for graph in known:
                waits = not graph.reached and any(other.reached for other in known)
                if not waits or run.finished or run.steps >= self.turns:
                    yield from self._cut_layers(run, graph)

    # -- a loss without a grad_fn --

    def _cut_losses(self, run: RunView) -> Iterator[Finding]:
        crashed = bool(run.raised(NO_GRAD))
        present = [s for _, s in run.series(signals.GRAD_PRESENT)]
        learned_nothing = bool(present) and all(s.max == 0.0 for s in present)
        for fact in run.known(LossCutFact):
            if fact.requires_grad:
                if learned_nothing:
                    yield self._loss(fact, "the loss that backward() is called on has no grad_fn: no weight "
                                           "gets a gradient")  # fmt: skip
                    return
            elif crashed:
                yield self._loss(fact, "backward() fails because the loss has no grad_fn")
                return

    def _loss(self, fact: LossCutFact, message: str) -> Finding:
        reason, fix = _why(fact)
        return self.finding(
            Severity.ERROR,
            message=f"{message}; {reason}",
            fix=fix,
            site=Site(op="backward", file=fact.file, line=fact.line),
            step=fact.step,
            evidence=Evidence(f"grad_fn of the loss is None, its requires_grad {fact.requires_grad}"),
        )

    # -- layers before a cut --

    def _cut_layers(self, run: RunView, graph: GraphFact) -> Iterator[Finding]:
        known, never = run.parameters.get(graph.root), never_trained(run, graph.root)
        if known is None:
            return
        # A layer that learns with some of its parameters is not cut off: a bias may drop out of a derivative.
        learning = {p.module for p in known.items if p.requires_grad and p.name not in never}
        lost = {name: p for name, p in never.items() if p.module not in learning}
        asleep = [lost[n] for n in graph.cut_by_no_grad if n in lost and not lost[n].loaded]
        cut = [lost[n] for n in graph.cut if n in lost]
        if not cut and not asleep:
            return
        groups = holders([*cut, *asleep], known.items)
        layers = [path or "the model" for path, _ in groups]
        place = _most_suspect(graph) if cut else None
        site = Site(module=groups[0][0], root=graph.root)
        yield self.finding(
            Severity.ERROR if not graph.reached else Severity.WARNING,
            message=f"{listed(layers)} {'runs' if len(layers) == 1 else 'run'} in the forward pass but "
            f"{'gets' if len(layers) == 1 else 'get'} no gradient: {_cause(place, asleep)} between there and "
            "the loss",
            fix=_repair(place, asleep),
            site=Site(module=site.module, root=site.root, file=place.file, line=place.line, op=place.op)
            if place
            else site,
            step=known.step,
            evidence=list(_evidence(graph, [*cut, *asleep])),
        )


def _why(fact: LossCutFact) -> tuple[str, str]:
    """What was seen of the program when the loss turned out to have no grad_fn."""
    if not fact.grad_enabled:
        return (
            "gradients are switched off here",
            "with torch.enable_grad():  # or move it out of the no_grad block",
        )
    if not fact.trainable:
        return "no parameter of the model requires a gradient", "model.requires_grad_(True)"
    if fact.forwards == 0:
        return "the model ran under no_grad", "output = model(x)  # outside torch.no_grad()"
    return (
        "something after the model cut it (argmax, .item(), .detach(), torch.tensor(...), numpy)",
        "loss = criterion(model(x), y)  # only tensors, without .item(), .detach() or torch.tensor()",
    )


def _most_suspect(graph: GraphFact) -> Site | None:
    return min(graph.cuts, key=lambda site: site.op in LOGGING, default=None)


def _cause(place: Site | None, asleep: list[ParameterRow]) -> str:
    if place is not None:
        call = ".data" if place.op == "data" else f"{place.op}()"
        return f"{call} cuts the graph"
    return (
        "a no_grad block cuts the graph"
        if asleep
        else "something cuts the graph (detach, .data, numpy, torch.tensor)"
    )


def _repair(place: Site | None, asleep: list[ParameterRow]) -> str:
    if place is not None:
        call = ".data" if place.op == "data" else f".{place.op}()"
        return f"remove {call} here; or set requires_grad_(False) on layers that should stay frozen"
    if asleep:
        return "run it outside torch.no_grad(); or set requires_grad_(False) if it should stay frozen"
    return "no .detach(), .data, numpy or torch.tensor(...) on the output of these layers"


def _evidence(graph: GraphFact, parameters: list[ParameterRow]) -> Iterator[Evidence]:
    yield Evidence(f"never get a gradient: {listed([p.name for p in parameters], 8)}")
    yield Evidence(f"the loss depends on {counted(graph.reached, 'parameter')} of the model")
    for site in graph.cuts[:5]:
        yield Evidence(f"taken out of the graph by {site.op}", site=site)
