"""The results of a dataset survey: a table of fields, labels as bars, and the rest in words.

The checks say what is wrong with the data; this shows what is in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.dataset_survey import (
    Between,
    Count,
    DatasetSurvey,
    Duplicates,
    FieldSurvey,
    LabelSurvey,
    SampleOrder,
)
from clew.records.plural import counted
from clew.render.number_text import duration, number, share
from clew.render.safe_text import cut, neutral
from clew.render.screen import Screen
from clew.render.text_table import Column, draw_table
from clew.render.verdict.preflight_html import text

MOST_LISTED = 6
RANDOM = 3.0  # standard errors within which an order counts as random
SORTED = 0.25  # of the label changes in a random order, below which data counts as sorted
HOW = {"picture": "as images", "features": "by their values", "shingles": "as texts"}

INDENT = 2
COLUMN = 9  # width of the labels of lines
MOST_CLASSES = 12  # with bars, unless all are requested
CELL = 24  # columns of a bar with its class and count
NAME = 10  # of a class
HEADS = ("field", "kind", "shape", "type", "from", "to", "mean", "std", "zeros")
SEVERAL = 9  # shapes, above which they are not counted
MOST_FIELDS = 8  # in the table, unless all are requested
LEFT = ("kind", "shape", "type")  # columns with words
DROPPED = {"zeros": 2, "std": 1}  # where there is no room, the highest first


def draw(screen: Screen, surveys: Sequence[DatasetSurvey], between: Sequence[Between], *, full: bool) -> None:
    """One block per split, then the splits compared."""
    for survey in surveys:
        screen.blank()
        screen.block(screen.join(screen.text(neutral(survey.split, 40), "bold"), f"  {_title(survey)}"))
        _draw_fields(screen, survey, full)
        _draw_labels(screen, survey, full)
        for label, words in _lines(survey):
            screen.block(neutral(words), indent=INDENT, label=label, column=COLUMN)
    sentences = [compared(pair) for pair in between]
    if any(sentences):
        screen.blank()
    for words in sentences:
        screen.block(neutral(words))


def _title(survey: DatasetSurvey) -> str:
    if not survey.samples_read and not survey.corrupt_count:
        return f"not checked: {neutral(survey.stopped, 200) or 'no samples'}"
    read = f"{survey.samples_read + survey.corrupt_count:,}"
    if survey.total is not None and not survey.whole:
        read = f"{read} of {survey.total:,}"
    return f"{read} samples checked in {duration(survey.seconds)}{ended(survey)}"


def _lines(survey: DatasetSurvey) -> list[tuple[str, str]]:
    """The remaining remarks, each with its label."""
    lines = [
        ("order", order_of(survey)),
        ("copies", alike(survey)),
        ("unusual", unusual(survey)),
        ("corrupt", corrupt(survey)),
    ]
    return [(label, words) for label, words in lines if words]


# -- fields --


def rows(survey: DatasetSurvey) -> list[tuple[str, ...]]:
    """The cells of the table, field by field."""
    return [_cells(field) for field in survey.fields]


def _cells(field: FieldSurvey) -> tuple[str, ...]:
    values = (field.low, field.high, field.mean, field.std)
    single = field.kind == "number" and field.role == "label"
    numbers = ["" if v is None or (single and n > 1) else number(v) for n, v in enumerate(values)]
    zeros = share(field.zeros) if field.zeros and not single else ""
    shape = _different(field.shapes) if field.kind not in ("text", "object", "number") else ""
    named = f"{neutral(field.name, 24)} ({field.role})" if field.role != "other" else neutral(field.name, 24)
    return (named, field.kind, shape, _different(field.dtypes), *numbers, zeros)


def _different(counts: Sequence[Count]) -> str:
    """The most frequent, and how many others there are."""
    if not counts:
        return ""
    first = neutral(counts[0].what, 20)
    if len(counts) == 1:
        return first
    return f"{first} and others" if len(counts) > SEVERAL else f"{first} +{len(counts) - 1}"


def _draw_fields(screen: Screen, survey: DatasetSurvey, full: bool) -> None:
    table = rows(survey)
    if not table:
        return
    shown = table if full else table[:MOST_FIELDS]
    columns = [Column(HEADS[0], left=True, flexible=True, least=8)]
    columns += [Column(head, left=head in LEFT, drop=DROPPED.get(head, 0)) for head in HEADS[1:]]
    draw_table(screen, columns, shown, indent=INDENT)
    if len(shown) < len(table):
        screen.block(screen.text(f"and {len(table) - len(shown)} more fields", "dim"), indent=INDENT)


# -- labels --


def _draw_labels(screen: Screen, survey: DatasetSurvey, full: bool) -> None:
    labels = survey.labels
    if labels is None or labels.kind != "class" or not labels.counts:
        return
    counts = labels.counts if full else labels.counts[:MOST_CLASSES]
    across = max((screen.width - INDENT - COLUMN) // (CELL + 2), 1)
    wide = min(max(len(neutral(count.what, NAME)) for count in counts), NAME)
    cells = [_bar(screen, count, labels.counts[0].samples, wide) for count in counts]
    label = "labels"
    for first in range(0, len(cells), across):
        screen.row("  ".join(cells[first : first + across]), indent=INDENT, label=label, column=COLUMN)
        label = ""
    rest = labels.classes - len(counts)
    more = [f"and {rest} smaller classes" if rest else "", _missing(labels)]
    for words in filter(None, more):
        screen.block(screen.text(words, "dim"), indent=INDENT, column=COLUMN)


def _bar(screen: Screen, count: Count, most: int, wide: int) -> str:
    """`cat        ██████   1,203`"""
    name, many = neutral(count.what, NAME) or "(empty)", f"{count.samples:,}"
    room = CELL - wide - len(many) - 2
    filled = max(round(room * count.samples / max(most, 1)), 1) if room > 0 else 0
    bar = screen.glyphs.block * filled
    return f"{cut(name, wide).ljust(wide)} {bar.ljust(max(room, 0))} {many}"


def _missing(labels: LabelSurvey) -> str:
    if not labels.missing:
        return ""
    names = ", ".join(str(n) for n in labels.missing[:12])
    more = f" and {len(labels.missing) - 12} more" if len(labels.missing) > 12 else ""
    return f"no sample of class {names}{more}"


# -- HTML --


def fragment(surveys: Sequence[DatasetSurvey], between: Sequence[Between]) -> str:
    """The same as a piece of HTML."""
    sentences = "".join(f"<p>{text(words)}</p>" for pair in between if (words := compared(pair)))
    return "".join(_section(survey) for survey in surveys) + sentences


def _section(survey: DatasetSurvey) -> str:
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    body = "".join(
        f"<tr>{''.join(f'<td>{text(cell, 60)}</td>' for cell in row)}</tr>" for row in rows(survey)
    )
    table = f"<table><tr>{heads}</tr>{body}</table>" if body else ""
    lines = "".join(f"<p><b>{label}</b> {text(words)}</p>" for label, words in _lines(survey))
    title = f"<h3>{text(survey.split, 60)}</h3><p>{text(_title(survey), 300)}</p>"
    return f"{title}{table}{_bars(survey)}{lines}"


def _bars(survey: DatasetSurvey) -> str:
    labels = survey.labels
    if labels is None or labels.kind != "class" or not labels.counts:
        return ""
    most = max(labels.counts[0].samples, 1)
    style = "background:#4a90d9;height:.8em;width:"
    cells = "".join(
        f"<tr><td>{text(c.what, 60)}</td>"
        f'<td><div style="{style}{max(200 * c.samples // most, 1)}px"></div></td>'
        f"<td>{c.samples:,}</td></tr>"
        for c in labels.counts
    )
    missing = f"<p>{text(_missing(labels))}</p>" if labels.missing else ""
    return f"<table>{cells}</table>{missing}"


def ended(survey: DatasetSurvey) -> str:
    """Why the survey ended before the end of the data, and what was random about it."""
    words = ""
    if survey.stopped == "the time limit":
        words += " (time limit reached)"
    elif survey.stopped:
        words += f"; stopped: {survey.stopped}"
    return words + ("; reading is random" if survey.random else "")


def order_of(survey: DatasetSurvey) -> str:
    """The order of the labels in the dataset, and as the loader delivers them."""
    labels, order = survey.labels, survey.order
    if labels is None or labels.neighbours < 2:
        return ""
    return ", ".join(part for part in (_in_dataset(labels), _delivered(order)) if part)


def _in_dataset(labels: LabelSurvey) -> str:
    if labels.kind == "value":
        return (
            f"targets of neighbouring samples are correlated ({labels.trend:.2f})"
            if labels.trend > 0.5
            else ""
        )
    if labels.classes < 2:
        return ""
    switches, by_chance = share(labels.switches), share(labels.by_chance)
    if labels.switches <= SORTED * labels.by_chance:
        return f"sorted by label: {switches} of neighbours differ, {by_chance} expected by chance"
    if abs(labels.deviations) <= RANDOM:
        return "labels in random order"
    return f"{switches} of neighbours differ in label, {by_chance} expected by chance"


def _delivered(order: SampleOrder | None) -> str:
    if order is None or not order.batches:
        return ""
    if order.shuffled:
        return "shuffled by the loader"
    return f"read by {order.sampler}" if order.sampler else ""


def alike(survey: DatasetSurvey) -> str:
    """The copies within a split, in words."""
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
    copies = "; ".join(word for word in words if word) or "none"
    return f"{copies}{_estimate(survey, exact)}"


def _copies(found: Duplicates, what: str) -> str:
    if not found.copies:
        return ""
    shown = found.pairs[:3]
    pairs = ", ".join(f"{p.first} {'=' if found.method == 'content' else '~'} {p.second}" for p in shown)
    more = f" and {found.copies - len(shown):,} more" if found.copies > len(shown) else ""
    apart = f", {found.conflicting:,} of them with different labels" if found.conflicting else ""
    meant = f"; {found.meant}" if found.meant else ""
    return f"{found.copies:,} {what}{apart}: {pairs}{more}{meant}"


def _estimate(survey: DatasetSurvey, exact: Duplicates) -> str:
    if survey.whole or not survey.total:
        return ""
    if exact.copies:
        return f"; about {share(exact.share)} of all samples, estimated from those read"
    return " among those read"


def unusual(survey: DatasetSurvey) -> str:
    if not survey.outlier_count:
        return ""
    kinds: dict[str, list[int]] = {}
    for outlier in survey.outliers:
        kinds.setdefault(outlier.why, []).append(outlier.index)
    return "; ".join(f"{why}: {_listed(sorted(set(where)))}" for why, where in kinds.items())


def corrupt(survey: DatasetSurvey) -> str:
    if not survey.corrupt_count:
        return ""
    first = survey.corrupt[0]
    words = f"{counted(survey.corrupt_count, 'sample')}: {_listed([c.index for c in survey.corrupt])}"
    return f"{words}; sample {first.index}: {first.error}"


def compared(pair: Between) -> str:
    """What two splits have in common, in one sentence."""
    if pair.same_dataset:
        return f"{pair.second} reads the same dataset as {pair.first}"
    if pair.exact.reason:
        return f"{pair.second} could not be compared with {pair.first}: {pair.exact.reason}"
    if not pair.exact.compared:
        return ""
    within = "" if pair.coverage >= 1 else f" ({share(pair.coverage)} of it was read)"
    parts = [
        counted(n.copies, f"{what} copy", f"{what} copies")
        for n, what in ((pair.exact, "exact"), (pair.near, "near"))
        if n.copies
    ]
    if pair.shared:
        parts.append(f"{pair.shared:,} by the same index")
    found = ", ".join(parts) or "none"
    also = f"samples of {pair.second} that are also in {pair.first}{within}"
    return f"{also}: {found} ({pair.exact.compared:,} compared)"


def _listed(indices: Sequence[int]) -> str:
    some = ", ".join(str(n) for n in indices[:MOST_LISTED])
    return some if len(indices) <= MOST_LISTED else f"{some} and {len(indices) - MOST_LISTED} more"
