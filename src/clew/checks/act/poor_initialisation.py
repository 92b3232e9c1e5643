"""ACT002 poor-initialisation

## What it detects
Initial weights that keep training from starting. Either all units of a layer have the same weights and
are still identical after several steps; or the weights are many times larger than the layer's fan-in
allows, so that signals grow from layer to layer or saturate the activations; or they are so small that
signals die out and the loss does not move. `clew check` runs an experiment: where initial weights are
out of scale or identical, it repeats the same short training from default initial weights and reports if
that ends at less than half of the loss, for each of three random draws. `clew show` reports hidden
layers whose units start as copies of one another, and weights of zero that block the input.

## Why is this bad?
Units that start identical get the same gradient and stay identical: a layer of a hundred units can do no
more than one unit. And a network keeps the scale of signals and gradients only if the weights have a
standard deviation of about 1/sqrt(fan_in).

## How to fix
Use the default initialisation, or `nn.init.kaiming_normal_` for ReLU and `nn.init.xavier_normal_`
for tanh and sigmoid. Constants are for biases, and for the last layer of a residual branch.

## Known problems
The scale is not checked in models with normalisation layers or loaded from a checkpoint. Layers that
start at zero on purpose (heads, residual branches, LoRA) become different in the first steps and are not
reported.

## References
- Glorot and Bengio, Understanding the difficulty of training deep feedforward networks, 2010.
- He et al., Delving deep into rectifiers, 2015.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, why_not
from clew.checks.evidence.gradient_depth import is_weight
from clew.checks.evidence.layer_pairs import normalises
from clew.checks.evidence.loss_trend import only_loss, pretrained, start_and_end
from clew.checks.evidence.parameter_holders import shape_of
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.wording import in_code, listed, too_few
from clew.records import signals
from clew.records.facts.learning_experiment_facts import PoorInitialisationFact
from clew.records.facts.model_facts import InitialWeightsFact, ParametersFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class WeightGain:
    """How much a layer's initial weights amplify: 1 keeps the scale."""

    site: Site
    value: float
    fan_in: int


@dataclass(frozen=True)
class AlikeUnits:
    """Units of a layer that start with the same weights and stay the same."""

    steps: int = 8  # after which the units should have become different

    def find(self, run: RunView) -> Iterator[Site]:
        """The weights that are trained and whose rows are still identical."""
        if run.steps < self.steps:
            return
        for root, fact in run.parameters.items():
            for row in fact.items:
                trained = row.requires_grad and row.optimizer is not None
                site = Site(module=row.module, root=root, param=row.param)
                if row.alike and trained and is_weight(run, site):
                    yield site


@dataclass(frozen=True)
class LargeWeights:
    """Weights so large that signals grow from layer to layer, or saturate the activations."""

    gain: float = 4.0  # root mean square times sqrt(fan_in); torch's default is 0.6, He's 1.4
    grown: float = 10.0  # standard deviation of a hidden layer's first output; 1 is normal
    saturated: float = 0.6  # share of a squashing function's first outputs at their flat ends

    def harm(self, run: RunView, hidden: Sequence[WeightGain]) -> str | None:
        """What the weights do to the first outputs; None if they are not so large, or do no harm."""
        if not _typical(hidden) > self.gain:
            return None
        squashed = [s for _, s in run.series(signals.ACTIVATION_SATURATED) if s.steps[0] == 0]
        flat = max((float(s.values[0]) for s in squashed if math.isfinite(s.values[0])), default=0.0)
        spread = max(_first_stds(run, hidden), default=0.0)
        if spread > self.grown:
            return f"too large, and the first outputs have a standard deviation of {spread:.3g}"
        return (
            f"too large, and {flat:.0%} of the first outputs are saturated" if flat > self.saturated else None
        )


@dataclass(frozen=True)
class SmallWeights:
    """Weights so small that signals die out and the loss does not move."""

    gain: float = 0.1  # root mean square times sqrt(fan_in); GPT-2's 0.02 gives 0.5, in a small model 0.16
    shrunk: float = 0.01  # standard deviation of a hidden layer's first output that carries no signal
    stuck: float = 0.95  # loss at the end over that at the start
    patience: int = 50  # losses before this is checked

    def harm(self, run: RunView, hidden: Sequence[WeightGain]) -> str | None:
        """What they do to the first outputs and the loss; None if they are not small, or do no harm."""
        loss = only_loss(run) if _typical(hidden) < self.gain else None
        if loss is None or len(loss) < self.patience:
            return None
        start, end = start_and_end(loss)
        narrowest = min(_first_stds(run, hidden), default=1.0)
        if not narrowest < self.shrunk or not end >= self.stuck * start:
            return None
        outputs = f"the first outputs have a standard deviation of {narrowest:.2g}"
        return f"too small: {outputs}, and the loss stays at {end:.3g}"


@dataclass(frozen=True)
class RedrawnWeightsExperiment:
    """What a short training from default initial weights must show."""

    draws: int = 3  # draws of new weights, all of which must do better
    better: float = 0.5  # share of the loss at which they must end; new sound weights change a few percent

    def shows(self, ends: Sequence[float], fresh: Sequence[float]) -> bool:
        """Whether every draw of new weights ends far below the weights of the program."""
        return min(len(ends), len(fresh)) >= self.draws and max(fresh) < self.better * min(ends)


@dataclass(frozen=True)
class PoorInitialisation(Check):
    id = "ACT002"
    name = "poor-initialisation"
    rank = 1130
    needs = (
        any_of(ParametersFact, PoorInitialisationFact),
        any_of(signals.WEIGHT.norm, PoorInitialisationFact),
    )
    on_one_forward = True

    groups = ("layer-faults",)
    caused_by = ("unnormalised-input", "pretrained-preprocessing-mismatch")

    alike: AlikeUnits = field(default_factory=AlikeUnits)
    large: LargeWeights = field(default_factory=LargeWeights)
    small: SmallWeights = field(default_factory=SmallWeights)
    trial: RedrawnWeightsExperiment = field(default_factory=RedrawnWeightsExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        tried = list(self._tried(run))
        yield from tried or self._watched(run)

    def _tried(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(PoorInitialisationFact)
        if found is None or not found.layers:
            return
        ends, fresh = ([_or_inf(v) for v in losses] for losses in (found.ends, found.fresh_ends))
        if not self.trial.shows(ends, fresh):
            return
        alike = [layer for layer in found.layers if layer.alike]
        worst = alike[0] if alike else max(found.layers, key=lambda layer: abs(_log(layer.gain)))
        path = worst.module
        what = "the same for every unit" if alike else f"{worst.gain:.2g} times the usual magnitude"
        yield self.finding(
            Severity.WARNING,
            message=f"the initial weights of {path or 'the model'} are {what}: on a snapshot, "
            f"{found.steps} steps end at a loss of {median(ends):.3g}, but from default initial weights "
            f"at {median(fresh):.3g}",
            fix=f"nn.init.kaiming_normal_({in_code(path)}.weight)"
            if path
            else "nn.init.kaiming_normal_(weight)",
            site=Site(module=path, param="weight"),
            step=0,
            evidence=[
                *curve(run, self.name),
                Evidence(
                    "weights times sqrt(fan_in), in forward order: "
                    + listed([f"{layer.module} {layer.gain:.2g}" for layer in found.layers], 12)
                ),
            ],
        )

    def _watched(self, run: RunView) -> Iterator[Finding]:
        yield from self._at_start(run)
        for site in self.alike.find(run):
            yield self._alike(run, site)
        gains = sorted(_gains(run), key=lambda g: run.depth(g.site))
        if len(gains) < 2 or pretrained(run) or normalises(run):
            return
        hidden = gains[:-1]  # the last layer may start small
        harm = self.large.harm(run, hidden) or self.small.harm(run, hidden)
        if harm is not None:
            yield self._out_of_scale(run, hidden, harm)

    def _at_start(self, run: RunView) -> Iterator[Finding]:
        """By `clew show`, before any training."""
        for fact in run.known(InitialWeightsFact):
            for row in fact.layers:
                site = Site(module=row.module, root=fact.root, param=row.param)
                behind = run.name(Site(module=row.behind, root=fact.root))
                what = (
                    f"are all zero: none of the input reaches {behind}"
                    if row.zero
                    else f"are the same for every unit: {behind} gets only copies of one value"
                )
                yield self.finding(
                    Severity.WARNING,
                    message=f"the weights of {run.name(site)} {what}",
                    fix=f"nn.init.kaiming_normal_({in_code(site.module)}.{site.param})  # not a constant",
                    site=site,
                    step=0,
                    evidence=Evidence("the rows of the weight are identical"),
                )

    def _alike(self, run: RunView, site: Site) -> Finding:
        norms = run.of_parameter(signals.WEIGHT.norm, run.key(site))
        zero = norms is not None and norms.max == 0
        evidence = [] if norms is None else [norms.evidence(f"norm of {run.name(site)}")]
        what = "are all zero" if zero else "are the same for every unit"
        return self.finding(
            Severity.ERROR,
            message=f"the weights of {run.name(site)} {what} and stay the same: "
            "its units can never become different",
            fix=f"nn.init.kaiming_normal_({in_code(site.module)}.{site.param})  # not a constant",
            site=site,
            step=0,
            evidence=[*evidence, Evidence(f"compared after {run.steps} steps: the rows are identical")],
        )

    def _out_of_scale(self, run: RunView, hidden: Sequence[WeightGain], what: str) -> Finding:
        worst = max(hidden, key=lambda g: abs(math.log(g.value)))
        rms = worst.value / math.sqrt(worst.fan_in)
        usual = 1 / math.sqrt(worst.fan_in)
        path = worst.site.module
        return self.finding(
            Severity.WARNING,
            message=f"the initial weights of {run.name(worst.site)} are {what}; the weights' root mean "
            f"square is {rms:.2g}, where {usual:.2g} is usual for a fan-in of {worst.fan_in}",
            fix=f"nn.init.kaiming_normal_({in_code(path)}.{worst.site.param})",
            site=worst.site,
            step=0,
            evidence=Evidence(
                "weights over 1/sqrt(fan_in), in forward order: "
                + listed([f"{run.name(g.site)} {g.value:.2g}" for g in hidden], 12)
            ),
        )

    def unjudged(self, run: RunView) -> str | None:
        if run.has(PoorInitialisationFact):
            return why_not(run, self.name)
        if run.has(InitialWeightsFact):
            return None
        return too_few(run.steps, self.alike.steps, "steps")


def _or_inf(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _log(gain: float) -> float:
    return math.log(gain) if gain > 0 else -math.inf if gain == 0 else 0.0


def _gains(run: RunView) -> Iterator[WeightGain]:
    for site, norms in run.series(signals.WEIGHT.norm):
        dims = shape_of(run, site)
        layer = run.layer_of(site)
        if not is_weight(run, site) or len(dims) < 2 or (layer and "Transpose" in layer.kind):
            continue
        fan_in = math.prod(dims[1:])
        first = float(norms.values[0])
        if fan_in and dims[0] and math.isfinite(first) and first > 0 and norms.steps[0] == 0:
            yield WeightGain(site, first / math.sqrt(dims[0] * fan_in) * math.sqrt(fan_in), fan_in)


def _typical(hidden: Sequence[WeightGain]) -> float:
    return median(gain.value for gain in hidden)


def _first_stds(run: RunView, hidden: Sequence[WeightGain]) -> list[float]:
    """The standard deviations of the first outputs of these layers."""
    paths = {(run.key(g.site)[0], g.site.module) for g in hidden}
    return [
        float(s.values[0])
        for site, s in run.series(signals.ACTIVATION.std)
        if site.op is None and (run.key(site)[0], site.module) in paths and math.isfinite(s.values[0])
    ]
