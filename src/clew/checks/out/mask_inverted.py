"""OUT004 mask-inverted

## What it detects
An attention or pooling mask with the wrong sign: it hides the real tokens and lets padding through, or
hides the past and shows the future. Also a sample with real tokens that are all masked. An experiment
(`clew check`) adds noise to the embedding of each token: if padding changes the output and real tokens
do not, the mask is inverted, in any form.

## Why is this bad?
The model reads padding, which is the same for every sample, and learns nothing from the text. With the
past hidden, a language model sees what it should predict. Rows without a key become NaN, or a uniform
average.

## How to fix
`nn.MultiheadAttention` and `nn.TransformerEncoder` take True for what is *hidden* (`tokens == pad`);
`F.scaled_dot_product_attention` takes True for what is *seen* (`tokens != pad`).

## Known problems
Padding is known from an embedding's `padding_idx`, or from zeros that occur only at the ends of rows;
without either, or where the mask has a different shape than the tokens, nothing is reported.

## References
- PyTorch docs, torch.nn.MultiheadAttention: key_padding_mask; scaled_dot_product_attention: attn_mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import or_nan
from clew.checks.needs import any_of
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.facts.experiment_facts import NO_PLACE
from clew.records.facts.loss_facts import LossFact
from clew.records.facts.network_experiment_facts import MaskInvertedFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.signal_types import Signal
from clew.records.site import Site

TAKES_SEEN = "scaled_dot_product_attention"


@dataclass(frozen=True)
class OppositeMask:
    """A mask that hides the real tokens and shows the padding."""

    share: float = 0.99  # share of padded samples whose mask is the exact opposite of their padding

    def find(self, check: Check, run: RunView, samples: int) -> Iterator[Finding]:
        for site, shares in _masks(run, signals.MASK_INVERTED, samples):
            if shares.min >= self.share:
                yield self._finding(check, run, site, shares)

    def _finding(self, check: Check, run: RunView, site: Site, shares: Series) -> Finding:
        padding = run.at_site(signals.MASK_PADDING, site)
        share = padding.median if padding is not None else float("nan")
        call = "pooling" if site.op == "mul" else "attention"
        return check.finding(
            Severity.ERROR,
            message=f"the mask is inverted: {call} sees only the padding ({share:.0%} of the tokens) and "
            "none of the real tokens",
            fix="attn_mask=(tokens != pad)[:, None, None, :]  # True: seen"
            if site.op == TAKES_SEEN
            else "mask = ~mask  # here True (or 1) must mean hidden"
            if site.op != "mul"
            else "mask = (tokens != pad).float()  # 1 for real tokens",
            site=site,
            step=int(shares.steps[0]),
            evidence=[
                shares.evidence("share of padded samples whose mask is the opposite of their padding"),
                Evidence(f"{share:.0%} of the tokens are padding"),
            ],
        )


@dataclass(frozen=True)
class EmptyMask:
    """A mask that hides all tokens of a sample that has some."""

    share: float = 0.01  # share of samples with real tokens, all of which are hidden

    def find(self, check: Check, run: RunView, samples: int) -> Iterator[Finding]:
        for site, shares in _masks(run, signals.MASK_EMPTY, samples):
            if not shares.min > self.share:
                continue
            yield check.finding(
                Severity.WARNING,
                message=f"{shares.median:.0%} of the samples have real tokens, but the mask hides all of "
                "them",
                fix="mask only padding: tokens == pad",
                site=site,
                step=int(shares.steps[0]),
                evidence=shares.evidence("share of samples without any token to attend to"),
            )


@dataclass(frozen=True)
class PaddingExperiment:
    """What noise on the embeddings must show: the output depends on the padding, not on the tokens."""

    effect: float = 1e-3  # relative change of the output that noise on the padding must make in an experiment

    def find(self, check: Check, run: RunView) -> Iterator[Finding]:
        found = run.outcome(MaskInvertedFact)
        if found is None:
            return
        effect, read = found.padding_effect, or_nan(found.positions_read)
        most = 0 if found.by_position else 1  # tokens that may change the output, where there is one for all
        if not effect > self.effect or not read <= most:
            return
        yield check.finding(
            Severity.ERROR,
            message="the mask is inverted: the model reads the padding instead of the real tokens",
            fix="mask = ~mask  # or tokens != pad instead of tokens == pad",
            site=(found.place or NO_PLACE).site,
            step=0,
            evidence=[
                Evidence(
                    f"noise on the embeddings of padding changes the output by {effect:.2g} of its magnitude"
                ),
                Evidence(f"noise on one real token at a time: {read:.0f} of {found.positions} change it"),
            ],
            confidence="certain",
        )


@dataclass(frozen=True)
class MaskInverted(Check):
    id = "OUT004"
    name = "mask-inverted"
    rank = 760
    needs = (any_of(signals.LOSS, LossFact, MaskInvertedFact),)

    groups = ("layer-faults",)

    samples: int = 3  # sampled forwards with padding that are needed, all of which must show it
    opposite: OppositeMask = field(default_factory=OppositeMask)
    empty: EmptyMask = field(default_factory=EmptyMask)
    trial: PaddingExperiment = field(default_factory=PaddingExperiment)

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        recorded = list(self._recorded(run))
        yield from recorded or self.trial.find(self, run)

    def _recorded(self, run: RunView) -> Iterator[Finding]:
        yield from self.opposite.find(self, run, self.samples)
        yield from _future_only(self, run, self.samples)
        yield from self.empty.find(self, run, self.samples)

    def unjudged(self, run: RunView) -> str | None:
        most = run.longest(signals.MASK_INVERTED)
        return too_few(most, self.samples, "sampled forwards with a mask") if most else None


def _future_only(check: Check, run: RunView, samples: int) -> Iterator[Finding]:
    """Masks that hide all of the past and none of the future."""
    for site, shares in _masks(run, signals.MASK_FUTURE_ONLY, samples):
        if shares.min != 1.0:
            continue
        yield check.finding(
            Severity.ERROR,
            message="the causal mask is inverted: every position sees what comes after it, nothing before",
            fix="torch.tril(torch.ones(T, T)).bool()  # True: seen"
            if site.op == TAKES_SEEN
            else "torch.triu(torch.ones(T, T), diagonal=1).bool()  # True: hidden",
            site=site,
            step=int(shares.steps[0]),
            evidence=shares.evidence("1: all of the past is hidden, none of the future"),
        )


def _masks(run: RunView, signal: Signal, samples: int) -> Iterator[tuple[Site, Series]]:
    """The calls with enough samples of this signal, and its finite values."""
    for site, series in run.series(signal):
        known = series.finite()
        if len(known) >= samples:
            yield site, known
