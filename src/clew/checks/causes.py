"""Which finding explains which, so that a reader sees the root cause first.

The table is what an experienced engineer would say: fix the left one last. A cause counts only
if it was found too and was there no later than its effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from clew.records.finding import Finding, Severity

# Steps, gradients or labels that are wrong at the source make everything after them look ill.
_LOOP = ("missing-zero-grad", "missing-backward", "missing-optimizer-step", "accumulation-lost")
_CUT_OFF = (
    "optimizer-stale",
    "module-not-registered",
    "detached-graph",
    "parameter-not-in-optimizer",
    "frozen-parameters",
)
_LOSS = (
    "softmax-before-cross-entropy",
    "raw-scores-into-nll",
    "sigmoid-before-bce-with-logits",
    "logits-into-bce",
    "wrong-softmax-dim",
    "silent-broadcast",
    "loss-unfit",
    "output-activation-unfit",
)
_SCALE = ("pretrained-preprocessing-mismatch", "dataset-mutates", "unnormalised-input", "unnormalised-target")
_DATA = (
    "nonfinite-input",
    "constant-input",
    "constant-target",
    "repeated-batch",
    "unshuffled-data",
    "single-label-batches",
    "class-imbalance",
)
_RATE = ("scheduler-stuck", "learning-rate-too-high", "learning-rate-too-low")
_TOO_FAR = ("learning-rate-too-high", "missing-zero-grad", "accumulation-unscaled")  # steps too large
_INSIDE = (
    "no-nonlinearity",
    "poor-initialisation",
    "dropout-misplaced",
    "half-precision-underflow",
    "mask-inverted",
    "noise-scale-sign",
    "saturated-activation",
    "dead-units",
    "vanishing-gradient",
    "exploding-gradient",
)
# The network computes something else than was meant: only an experiment shows it.
_STRUCTURE = (
    "dimension-mixup",
    "batch-leak",
    "future-leak",
    "gradient-mismatch",
    "loss-prefers-wrong",
    "custom-layer-broken",
)
_ANYTHING = (*_LOOP, *_CUT_OFF, *_LOSS, *_SCALE, *_DATA, *_RATE, *_INSIDE, *_STRUCTURE, "over-regularised")

_LOADING = ("large-sample-transfer", "data-in-python-lists", "tensor-from-array-list", "double-precision")

SPEED = "PERF"  # the family of the ids of what costs time

# How a program is set up is there before any step, though it may take a few to be seen.
_FROM_THE_START = frozenset((*_CUT_OFF, *_LOSS, "metric-implausible"))

CAUSES: Mapping[str, tuple[str, ...]] = {
    "non-finite": (
        "nonfinite-input",
        "half-precision-overflow",
        "mask-inverted",
        "exploding-gradient",
        "weights-diverging",
        "learning-rate-too-high",
        "unnormalised-target",
    ),
    "half-precision-overflow": (*_TOO_FAR, *_SCALE),
    "exploding-gradient": (
        "half-precision-overflow",
        "clip-ineffective",
        "poor-initialisation",
        *_TOO_FAR,
        *_SCALE,
    ),
    "weights-diverging": ("exploding-gradient", *_TOO_FAR, *_SCALE),
    "learning-rate-too-high": (
        "missing-zero-grad",
        "accumulation-unscaled",
        "over-regularised",
        "poor-initialisation",
        *_SCALE,
        *_STRUCTURE,
    ),
    "learning-rate-too-low": (
        "half-precision-underflow",
        "scheduler-stuck",
        "clip-ineffective",
        "accumulation-lost",
        "over-regularised",
        *_STRUCTURE,
    ),
    "update-ratio-off": (
        "half-precision-underflow",
        "clip-ineffective",
        "learning-rate-too-low",
        "over-regularised",
        "poor-initialisation",
        *_TOO_FAR,
        *_LOOP,
    ),
    # A layer that gets no gradient keeps the units that its first weights left silent.
    "dead-units": ("poor-initialisation", *_TOO_FAR, *_CUT_OFF, *_LOSS, *_SCALE, *_DATA),
    # Large inputs saturate what squashes them; a layer of dead units passes nothing on.
    "saturated-activation": ("poor-initialisation", *_TOO_FAR, *_SCALE),
    "vanishing-gradient": (
        "mask-inverted",
        "dead-units",
        "saturated-activation",
        "activation-scale-off",
        "half-precision-underflow",
        "poor-initialisation",
        *_TOO_FAR,
        *_SCALE,
        *_DATA,
    ),
    "activation-scale-off": (
        "half-precision-overflow",
        "poor-initialisation",
        "weights-diverging",
        *_TOO_FAR,
        *_SCALE,
    ),
    "activation-mean-shift": (
        "poor-initialisation",
        "dead-units",
        "weights-diverging",
        *_TOO_FAR,
        *_SCALE,
    ),
    "poor-initialisation": ("unnormalised-input", "pretrained-preprocessing-mismatch"),
    "unnormalised-input": ("pretrained-preprocessing-mismatch", "dataset-mutates"),
    "constant-input": ("dataset-mutates",),
    "initial-loss-off-chance": ("activation-scale-off", "poor-initialisation", *_LOSS, *_SCALE),
    "loss-term-imbalance": ("unnormalised-target", "unnormalised-input"),
    "prediction-collapse": (*_ANYTHING, "labels-misaligned", "non-finite", "loss-term-imbalance"),
    "labels-misaligned": tuple(name for name in _ANYTHING if name != "dead-units"),
    "augmentation-repeats": ("labels-misaligned",),
    "metric-disagrees": (
        "train-mode-in-evaluation",
        "weights-untied",
        "label-map-mismatch",
        "labels-misaligned",
        "metric-implausible",
        *_LOSS,
    ),
    "batch-leak": ("wrong-softmax-dim", "dimension-mixup"),
    "future-leak": ("mask-inverted",),
    "loss-prefers-wrong": _LOSS,
    "custom-layer-broken": ("dimension-mixup", "batch-leak", "gradient-mismatch", "module-not-registered"),
    "single-label-batches": ("unshuffled-data", "constant-target"),
    "class-imbalance": ("constant-target", "unshuffled-data"),
    "repeated-batch": ("constant-input",),
    # A model that was replaced or kept in a list shows as parameters that nobody updates.
    "parameter-not-in-optimizer": ("optimizer-stale", "module-not-registered"),
    "frozen-parameters": ("optimizer-stale", "scheduler-stuck"),
    "unused-parameter": (
        "optimizer-stale",
        "module-not-registered",
        "detached-graph",
        "half-precision-underflow",
    ),
    "label-map-mismatch": ("train-mode-in-evaluation", "train-val-preprocessing-mismatch"),
    "overfitting": (
        "train-val-preprocessing-mismatch",
        "train-mode-in-evaluation",
        "weights-untied",
        "label-map-mismatch",
        "dataset-mutates",
        "repeated-batch",
    ),
    "underfitting": (*_ANYTHING, "labels-misaligned"),
    "loss-stuck": (*_ANYTHING, "clip-ineffective", "labels-misaligned"),
    # Labels that do not fit, or inputs of which nothing is left, tell a learner nothing.
    "no-signal": (
        "labels-misaligned",
        "loader-corrupts-data",
        "excessive-augmentation",
        "dataset-mutates",
        "input-ignored",
        "constant-input",
    ),
    "label-noise": ("labels-misaligned", "loader-corrupts-data", "dataset-mutates"),
    "input-ignored": (
        "constant-input",
        "loader-corrupts-data",
        "dataset-mutates",
        "mask-inverted",
        "dead-units",
    ),
    "excessive-augmentation": ("labels-misaligned", "dataset-mutates"),
    # What was tried on a snapshot: a network that can't learn a toy can't learn a batch either.
    "toy-task-failed": (*_ANYTHING, "input-ignored"),
    "capacity-too-small": tuple(name for name in _ANYTHING if name not in _RATE),
    "cannot-overfit-batch": (*_ANYTHING, "input-ignored", "toy-task-failed", "capacity-too-small"),
    "optimizer-unfit": (*_RATE, *_CUT_OFF, *_STRUCTURE, "poor-initialisation", "over-regularised"),
    "hyperparameters-off": (*_RATE, *_STRUCTURE, "optimizer-unfit", "poor-initialisation"),
    "loss-oscillates": ("unshuffled-data", "single-label-batches", "dataset-mutates", *_TOO_FAR),
    # Slow for what is done to each sample, or for how many do it.
    "slow-loader": ("loader-worker-count", *_LOADING),
    "loader-worker-count": _LOADING,
    "python-bound-step": ("host-sync-in-step",),
    "train-val-leakage": ("duplicate-samples",),  # copies that a random split puts on both sides
    "loss-spikes": (
        "exploding-gradient",
        "unshuffled-data",
        "single-label-batches",
        *_TOO_FAR,
        *_SCALE,
    ),
}


def folded(findings: Sequence[Finding], symptoms: Collection[str] = ()) -> list[Finding]:
    """The findings with their `because`, root causes first and each followed by its effects.

    A symptom that no cause in the table explains is put down to the worst fault there is: it stands
    on its own only where nothing else is wrong.
    """
    found = {f.check: f for f in findings}
    reasons = {f.check: _nearest(f.check, found) for f in findings}
    culprits = [f for f in findings if f.check not in symptoms and _spoils_training(f)]
    roots = [f for f in culprits if not reasons[f.check]]
    worst = min(roots, key=lambda f: f.severity.rank, default=None)
    for name in symptoms:
        if name in found and not reasons[name] and worst is not None:
            reasons[name] = [worst.check]
    explained = {name: f.with_because([found[c].id for c in reasons[name]]) for name, f in found.items()}
    effects = {name: [e for e in found if name in reasons[e]] for name in found}
    ordered: list[str] = []
    for root in sorted((n for n in found if not reasons[n]), key=lambda name: _urgency(name, found, effects)):
        _place(root, found, reasons, effects, ordered)
    return [explained[name] for name in ordered]


def _spoils_training(finding: Finding) -> bool:
    """What is slow learns no worse, and a hint is no fault."""
    return finding.severity is not Severity.ADVICE and not finding.id.startswith(SPEED)


def possible_causes(findings: Sequence[Finding]) -> list[str]:
    """What could lie behind the findings, the nearest to the first of them first."""
    names: dict[str, None] = {}
    waiting = [finding.check for finding in findings]
    while waiting:
        name = waiting.pop(0)
        waiting += [cause for cause in CAUSES.get(name, ()) if cause not in names]
        names.update(dict.fromkeys(CAUSES.get(name, ())))
    return list(names)


def _nearest(name: str, found: Mapping[str, Finding]) -> list[str]:
    """The causes found, without those that only act through another one of them."""
    direct = [c for c in CAUSES.get(name, ()) if c in found and _may_cause(found[c], found[name])]
    indirect = {further for cause in direct for further in _all_causes(cause, found)}
    return [cause for cause in direct if cause not in indirect]


def _all_causes(name: str, found: Mapping[str, Finding]) -> Iterator[str]:
    for cause in CAUSES.get(name, ()):
        if cause in found and _may_cause(found[cause], found[name]):
            yield cause
            yield from _all_causes(cause, found)


def _may_cause(cause: Finding, effect: Finding) -> bool:
    """A cause is there no later than its effect, and a mere hint explains no fault."""
    hint = cause.severity is Severity.ADVICE and effect.severity is not Severity.ADVICE
    in_time = cause.step is None or effect.step is None or cause.step <= effect.step
    in_time |= cause.check in _FROM_THE_START
    return in_time and not hint


def _urgency(
    name: str, found: Mapping[str, Finding], effects: Mapping[str, Sequence[str]]
) -> tuple[int, int, int, str]:
    """A root is as severe as the worst thing that follows from it."""
    own = found[name]
    worst = min((found[n].severity.rank for n in _family(name, effects)), default=own.severity.rank)
    return worst, own.severity.rank, own.step if own.step is not None else -1, own.id


def _family(name: str, effects: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield name
    for effect in effects[name]:
        yield from _family(effect, effects)


def _place(
    name: str,
    found: Mapping[str, Finding],
    reasons: Mapping[str, Sequence[str]],
    effects: Mapping[str, Sequence[str]],
    ordered: list[str],
) -> None:
    """Depth first; an effect of two causes waits for the second."""
    ordered.append(name)
    for effect in sorted(effects[name], key=lambda n: _urgency(n, found, effects)):
        if effect not in ordered and all(cause in ordered for cause in reasons[effect]):
            _place(effect, found, reasons, effects, ordered)
