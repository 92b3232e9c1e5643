"""PERF020 padding-waste

## What it detects
Batches of sequences that consist largely of padding: short samples are padded to the length of long
ones, or all to a fixed length that few of them reach.

## Why is this bad?
Padding is read, moved and computed on like everything else. A batch that is half padding takes about
twice the time and memory that its content needs, and attention takes even more.

## How to fix
Pad each batch only to its own longest sample (`pad_sequence` in `collate_fn`), and put samples of
similar length together: a batch sampler that sorts groups of about fifty batches by length and shuffles
the batches.

## Known problems
The saving holds for layers whose work grows with the length (recurrent, attention, convolution over
time). Sorting by length makes batches less random. Lengths are those of the sampled batches.

## References
- Khomenko et al., Accelerating recurrent neural network training using sequence bucketing, 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.loader_measurements import field_name, measured_loaders, site_of
from clew.checks.evidence.speed_gains import expected, gain_of, times
from clew.checks.run_view import RunView
from clew.records.facts.loader_facts import PaddingFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.loader_speed import MeasuredLoader, Padding


@dataclass(frozen=True)
class PaddingWaste(Check):
    id = "PERF020"
    name = "padding-waste"
    needs = (PaddingFact,)

    saved: float = 0.2  # least share of all elements that would be removed
    samples: int = 32  # with a known length that are needed
    batches: int = 4  # sampled batches that are needed: one or two say little about the others
    length: int = 32  # positions that the longest sample needs: shorter ones cost next to nothing
    gain: float = 1.05  # times as fast; a smaller gain is lost in the noise and not worth a change

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for one in measured_loaders(run):
            fields = one.paddings.fields if one.paddings is not None else ()
            worst = max((p for p in fields if self._is_telling(p)), key=_saves, default=None)
            if worst is None or _saves(worst) < self.saved:
                continue
            wait = one.speeds.wait if one.speeds is not None and one.speeds.wait is not None else 0.0
            gain = gain_of(_saves(worst) * (1 - wait))
            if gain >= self.gain:
                yield self._finding(one, worst, gain)

    def _is_telling(self, padding: Padding) -> bool:
        """Whether enough was measured, and the samples are long enough to matter."""
        enough = padding.samples >= self.samples and padding.batches >= self.batches
        return enough and padding.longest_length >= self.length

    def _finding(self, one: MeasuredLoader, worst: Padding, gain: float) -> Finding:
        # Which of two causes has the larger part: a fixed length, or lengths that differ within a batch.
        fixed = worst.saves(worst.longest) > 0.5 * _saves(worst)
        to = "the longest of its batch" if not fixed else f"{worst.padded_to:.0f}"
        return self.finding(
            Severity.ADVICE,
            message=f"{worst.share:.0%} of {field_name(worst.field)} is padding: samples of "
            f"{worst.median_length:.0f} (median) are padded to {to}; "
            f"without padding, a step could be up to {times(gain)} as fast",
            fix="pad to the longest sample of the batch, not to a fixed length (pad_sequence in collate_fn)"
            if fixed
            else "put samples of similar length together: a batch_sampler that sorts groups of batches "
            "by length",
            site=site_of(one),
            evidence=[
                expected(gain, f"{_saves(worst):.0%} of all elements would be removed"),
                Evidence(
                    f"padding in {worst.batches} batches: {worst.share:.0%} now, {worst.longest:.0%} if each "
                    f"were padded to its own longest, {worst.bucketed:.0%} with similar lengths together; "
                    f"lengths {worst.shortest_length} to {worst.longest_length}, known by {worst.how}"
                ),
            ],
            confidence="possible" if worst.how.startswith("pad value") else "likely",
        )


def _saves(padding: Padding) -> float:
    return max(padding.saves(padding.longest), padding.saves(padding.bucketed))
