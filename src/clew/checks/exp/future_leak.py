"""EXP041 future-leak

## What it detects
A causal model that sees later inputs: in evaluation mode, all inputs after one position are replaced,
and the outputs up to that position change. The finding names the first operation whose result changes. A
model counts as causal if its targets are its inputs shifted by one, if its attention gets a causal mask,
or by its name.

## Why is this bad?
The model sees the answer it should predict. Its loss falls far below what is possible, and generation,
where there is no future to see, fails.

## How to fix
Give every attention a causal mask (`is_causal=True`, `src_mask=`), use recurrent layers in one direction,
pad convolutions on the left only, and normalise over features, not over time.

## Known problems
Models that may see the whole sequence (taggers, encoders) are not checked.

## References
- Vaswani et al., Attention is all you need, 2017, section 3.2.3.
- van den Oord et al., WaveNet, 2016: causal convolutions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.experiment_outcome import curve, op_name
from clew.checks.run_view import RunView
from clew.records.facts.network_experiment_facts import FutureLeakFact
from clew.records.finding import Evidence, Finding, Severity

SURE = "the targets are the inputs moved by one"
_FIXES = {
    "scaled_dot_product_attention": "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "matmul": "scores.masked_fill(torch.ones(T, T).triu(1).bool(), float('-inf'))  # before the softmax",
    "rnn": "bidirectional=False",
    "lstm": "bidirectional=False",
    "gru": "bidirectional=False",
    "conv": "F.pad(x, (kernel - 1, 0)) and padding=0  # on the left only",
}


@dataclass(frozen=True)
class FutureLeak(Check):
    id = "EXP041"
    name = "future-leak"
    rank = 1410
    needs = (FutureLeakFact,)
    confidence = "certain"

    groups = ("network-faults",)
    caused_by = ("mask-inverted",)

    effect: float = 1e-3  # share of what the inputs change in the outputs after them; rounding gives far less

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = run.outcome(FutureLeakFact)
        if found is None or not found.effect > self.effect:
            return
        site, sure = found.place.site, found.why == SURE
        yield self.finding(
            Severity.ERROR if sure else Severity.WARNING,
            message="the model sees the future: its output at one position depends on inputs after it, "
            f"through {op_name(run, site)}",
            fix=_FIXES.get(site.op or "", "src_mask=nn.Transformer.generate_square_subsequent_mask(T)"),
            site=site,
            step=0,
            evidence=[
                Evidence(
                    f"with different inputs after position {found.last}, the outputs up to it change "
                    f"{found.effect:.2g} times as much as the outputs after it"
                ),
                Evidence(f"it should only look back: {found.why}"),
                *curve(run, self.name),
            ],
            confidence=None if sure else "possible",
        )
