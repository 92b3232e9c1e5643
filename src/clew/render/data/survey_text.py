"""A survey in sentences: the same on the terminal and in HTML."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.dataset_survey import Between, Duplicates, Labels, Order, Survey
from clew.render.cost_text import share

MOST_LISTED = 6
RANDOM = 3.0  # standard errors within which an order counts as random
SORTED = 0.25  # of the switches of a random order, below which data counts as sorted
HOW = {"picture": "as images", "features": "by their values", "shingles": "as texts"}


def ended(survey: Survey) -> str:
    """Why it was not the end of the data, and what was random about it."""
    words = ""
    if survey.stopped == "the time limit":
        words += ", when the time was up"
    elif survey.stopped:
        words += f"; then stopped: {survey.stopped}"
    return words + ("; reading uses random numbers" if survey.random else "")


def order_of(survey: Survey) -> str:
    """The order of the labels in the dataset, and as the loader delivers them."""
    said, order = survey.labels, survey.order
    if said is None or said.neighbours < 2:
        return ""
    return ", ".join(part for part in (_in_dataset(said), _delivered(order)) if part)


def _in_dataset(said: Labels) -> str:
    if said.kind == "value":
        return f"the targets of neighbours are correlated ({said.trend:.2f})" if said.trend > 0.5 else ""
    if said.classes < 2:
        return ""
    if said.switches <= SORTED * said.by_chance:
        return (
            f"sorted by label: {share(said.switches)} of neighbours differ, {share(said.by_chance)} by chance"
        )
    if abs(said.deviations) <= RANDOM:
        return "labels in random order"
    return f"{share(said.switches)} of neighbours differ in label, {share(said.by_chance)} would by chance"


def _delivered(order: Order | None) -> str:
    if order is None or not order.batches:
        return ""
    if order.shuffled:
        return "shuffled by the loader"
    return f"sampled by {order.sampler}" if order.sampler else ""


def alike(survey: Survey) -> str:
    """Copies within the split."""
    exact, near = survey.exact, survey.near
    if exact.reason and not exact.method:
        return f"could not be checked: {exact.reason}"
    if not exact.compared:
        return ""
    words = [_copies(exact, "exact"), _copies(near, f"near ({HOW.get(near.method, 'compared')})")]
    if near.copies and near.neighbours >= near.copies / 2:
        words[1] = "near copies are next to each other, like overlapping windows"
    if near.reason and near.compared:
        words[1] = f"near copies could not be checked: {near.reason}"
    told = "; ".join(word for word in words if word) or "none"
    return f"{told}{_estimate(survey, exact)}"


def _copies(found: Duplicates, what: str) -> str:
    if not found.copies:
        return ""
    shown = found.pairs[:3]
    pairs = ", ".join(f"{p.first} {'=' if found.method == 'content' else '~'} {p.second}" for p in shown)
    more = f" and {found.copies - len(shown):,} more" if found.copies > len(shown) else ""
    apart = f", {found.conflicting:,} of them with different labels" if found.conflicting else ""
    meant = f"; {found.meant}" if found.meant else ""
    return f"{found.copies:,} {what}{apart}: {pairs}{more}{meant}"


def _estimate(survey: Survey, exact: Duplicates) -> str:
    if survey.whole or not survey.total:
        return ""
    if exact.copies:
        return f"; about {share(exact.share)} of all samples, estimated from those read"
    return " among those read"


def unusual(survey: Survey) -> str:
    if not survey.outlier_count:
        return ""
    kinds: dict[str, list[int]] = {}
    for outlier in survey.outliers:
        kinds.setdefault(outlier.why, []).append(outlier.index)
    return "; ".join(f"{why}: {_listed(sorted(set(where)))}" for why, where in kinds.items())


def unread(survey: Survey) -> str:
    if not survey.corrupt_count:
        return ""
    first = survey.corrupt[0]
    words = f"{survey.corrupt_count:,}: {_listed([c.index for c in survey.corrupt])}"
    return f"{words}; sample {first.index}: {first.error}"


def compared(pair: Between) -> str:
    """Two splits in one sentence."""
    if pair.same_dataset:
        return f"{pair.second} reads the same dataset as {pair.first}"
    if pair.exact.reason:
        return f"{pair.second} could not be compared with {pair.first}: {pair.exact.reason}"
    if not pair.exact.compared:
        return ""
    within = "" if pair.coverage >= 1 else f" ({share(pair.coverage)} of it was read)"
    parts = [
        f"{n.copies:,} {what}" for n, what in ((pair.exact, "exactly"), (pair.near, "nearly")) if n.copies
    ]
    if pair.shared:
        parts.append(f"{pair.shared:,} by the same index")
    found = f"{', '.join(parts)}" if parts else "none"
    return f"{pair.second} in {pair.first}{within}: {found} of {pair.exact.compared:,} samples compared"


def _listed(indices: Sequence[int]) -> str:
    told = ", ".join(str(n) for n in indices[:MOST_LISTED])
    return told if len(indices) <= MOST_LISTED else f"{told} and {len(indices) - MOST_LISTED} more"
