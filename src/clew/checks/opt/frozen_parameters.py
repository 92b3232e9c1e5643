"""OPT003 frozen-parameters

## What it detects
Weights that can't change but probably should: random initial weights with `requires_grad` False, in a
model that is being trained; or weights in an optimizer whose learning rate has been 0 since the start
while they get gradients.

## Why is this bad?
A frozen random layer is a fixed random projection: it loses information, and everything after
it has to work with what is left. The usual cause is a freezing loop that also freezes a new layer.

## How to fix
Freeze only what was loaded, `for p in model.backbone.parameters(): p.requires_grad_(False)`, and
create new layers after freezing. With a learning rate of 0, check the scheduler and the unit of
its warm-up (steps or epochs).

## Known problems
Random projections that are fixed on purpose (random features, reservoirs) look the same: ignore the
check for them. Embeddings are exempt, since `from_pretrained` freezes word vectors that look random.
Layers whose values change without gradients (momentum encoders) are recognised and not reported.

## References
- PyTorch tutorial, Transfer learning for computer vision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.parameter_holders import holders
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import PHASE
from clew.checks.wording import in_code, listed
from clew.records import signals
from clew.records.facts.model_facts import ParameterRow, ParametersFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class FrozenParameters(Check):
    id = "OPT003"
    name = "frozen-parameters"
    needs = (ParametersFact,)
    scope = PHASE

    groups = ("wiring-faults",)
    from_the_start = True
    caused_by = ("optimizer-stale", "scheduler-stuck")

    zero_steps: int = 20  # steps at learning rate 0 from the start; a linear warm-up has one or two
    samples: int = 3  # sampled steps with a gradient and no update; one could be a skipped step

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for known in run.parameters.values():
            frozen = [p for p in known.items if known.optimised and _frozen(run, known, p)]
            for module, items in holders(frozen, [p for p in known.items if p.ndim >= 2]):
                yield self._random_and_frozen(run, known, module, items)
        yield from self._no_learning_rate(run)

    def _random_and_frozen(
        self, run: RunView, known: ParametersFact, module: str, items: list[ParameterRow]
    ) -> Finding:
        site = Site(module=module, root=known.root, param=items[0].param if len(items) == 1 else None)
        return self.finding(
            Severity.WARNING,
            message=f"{run.module_name(site)} is frozen with its random initial weights: requires_grad is "
            f"False, and nothing was loaded into {'it' if len(items) == 1 else 'them'}",
            fix=f"{in_code(module)}.requires_grad_(True)  # before you create the optimizer",
            site=site,
            step=_since(run, known, items),
            evidence=Evidence(f"still look freshly initialised: {listed([p.name for p in items], 8)}"),
        )

    def _no_learning_rate(self, run: RunView) -> Iterator[Finding]:
        for group in (signals.LR.name, *(signals.LR_GROUP.member(n) for n in range(1, 8))):
            for site, rate in run.series(group):
                if len(rate) < self.zero_steps or rate.max != 0.0:
                    continue
                stuck = self._stuck(run)
                if stuck:
                    yield self.finding(
                        Severity.WARNING,
                        message=f"the learning rate has been 0 since the start ({len(rate)} steps): "
                        f"{listed([run.name(s.site) for s in stuck])} can't change",
                        fix="lr=1e-3  # in the optimizer; check what the scheduler multiplies it by",
                        site=site,
                        step=int(rate.steps[0]),
                        evidence=[rate.evidence("learning rate"), stuck[0].evidence("they get gradients")],
                    )

    def _stuck(self, run: RunView) -> list[Series]:
        """Gradients of the parameters that got some and were never changed by them."""
        moved = {run.key(site): s for site, s in run.series(signals.UPDATE.norm)}
        return [
            gradient
            for site, gradient in run.series(signals.GRADIENT.norm)
            if (update := moved.get(run.key(site))) is not None
            and len(update) >= self.samples
            and update.max == 0.0
            and gradient.max > 0.0
        ]


def _frozen(run: RunView, known: ParametersFact, p: ParameterRow) -> bool:
    # A gradient means that it was trainable a moment ago: GANs freeze the discriminator by turns.
    if p.requires_grad or p.has_grad or p.loaded or not p.init_like or p.ndim < 2:
        return False
    layer = run.layer_of(Site(module=p.module, root=known.root))
    if layer and "Embedding" in layer.kind:
        return False
    norms = run.of_parameter(signals.WEIGHT.norm, (known.root, p.module, p.param))
    return norms is None or len(norms.finite()) == 0 or norms.min == norms.max


def _since(run: RunView, known: ParametersFact, items: list[ParameterRow]) -> int:
    """The step at which they were frozen: the first, if they were frozen in the first fact."""
    names = {p.name for p in items}
    own = [fact for fact in run.known(ParametersFact) if fact.root == known.root]
    free = [n for n, fact in enumerate(own) if any(p.requires_grad for p in fact.items if p.name in names)]
    return own[free[-1] + 1].step if free and free[-1] + 1 < len(own) else 0
