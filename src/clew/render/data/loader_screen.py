"""One loader on the screen: its settings, and its samples next to what the model gets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from clew.records.finding import Exhibit
from clew.records.sample_views import PipelineLook, ValueView
from clew.render.data.field_text import said_of, together
from clew.render.images import Image, image_of
from clew.render.number_text import number
from clew.render.plot_line import numbers
from clew.render.safe_text import cut, neutral, short_path
from clew.render.screen import Screen
from clew.render.sparkline import sparkline
from clew.render.verdict.sample_gallery import gallery, rows_of_numbers

INDENT, COLUMN = 2, 9
SMALLEST, LARGEST = 12, 20  # columns of a picture
AT_MOST = 8  # pictures in a row
WAVE = 40
FEW = 4  # samples of a loader that does not train


def draw_look(screen: Screen, shown: PipelineLook, *, brief: bool = False) -> None:
    """The whole block of a loader; `brief` leaves out what looks the same as with the one before."""
    _draw_title(screen, shown)
    if shown.stages and not brief:
        arrow = f" {screen.glyphs.arrow} "
        _row(screen, "way", arrow.join(neutral(name, 40) for name in shown.stages))
    if not brief:
        _draw_samples(screen, shown)
        _draw_fields(screen, shown)
    for n, remark in enumerate(shown.remarks):
        _row(screen, "" if n else "note", neutral(remark))
    for note in shown.notes:
        _row(screen, "not seen", neutral(note), "yellow")


def _row(screen: Screen, label: str, text: str, style: str = "") -> None:
    screen.block(screen.text(text, style), indent=INDENT, label=label, column=COLUMN)


def _draw_title(screen: Screen, shown: PipelineLook) -> None:
    role = {"train": "training", "eval": "evaluation"}.get(shown.role, "")
    place = f"{short_path(shown.file)}:{shown.line}" if shown.file else ""
    words = [role, place, *described(shown)]
    dot = f" {screen.glyphs.dot} "
    head = screen.text(neutral(shown.name, 60), "bold")
    screen.block(screen.join(head, "  ", dot.join(word for word in words if word)))


def described(shown: PipelineLook) -> list[str]:
    """Dataset, order, batches and workers."""
    if shown.kind == "model":
        return ["no DataLoader was found; these are the model's inputs"]
    if shown.kind == "batches":
        return ["batches passed in directly"]
    many = f", {shown.length:,} samples" if shown.length is not None else ""
    order = {True: "shuffled", False: "in order", None: ""}[shown.shuffled]
    size = f"batches of {shown.batch_size}" if shown.batch_size else ""
    workers = {0: "no workers", 1: "1 worker"}.get(shown.workers, f"{shown.workers} workers")
    return [f"{neutral(shown.dataset, 40)}{many}", order, size, workers]


def _draw_fields(screen: Screen, shown: PipelineLook) -> None:
    """Shapes, types and ranges: of a sample, of a batch, of what the model gets."""
    lines = [("dataset", name, said) for name, said in together([s for s in shown.samples if not s.error])]
    lines += [("batch", part.name, said_of([part])) for part in shown.batch]
    lines += [("model", part.name, said_of([part])) for part in shown.inputs]
    wide = min(max((len(name) for _, name, _ in lines), default=0), 16) + 2
    last = ""
    for label, name, said in lines:
        text = f"{cut(neutral(name, 60), wide - 2).ljust(wide)}{said}"
        screen.row(
            cut_end(text, screen.width - INDENT - COLUMN),
            indent=INDENT,
            label="" if label == last else label,
            column=COLUMN,
        )
        last = label


def cut_end(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


def _draw_samples(screen: Screen, shown: PipelineLook) -> None:
    pairs = _pairs(shown)
    for look in shown.samples:
        if look.error:
            _row(screen, "", f"{look.title} could not be read: {neutral(look.error)}", "red")
    if any(_image(look) is not None for look in (*shown.samples, *shown.rows)):
        _draw_pictures(screen, shown, pairs)
    else:
        _draw_lines(screen, shown, pairs)


def _pairs(shown: PipelineLook) -> list[tuple[ValueView | None, ValueView | None]]:
    """A sample and its row in the batch; where rows can't be told apart, one after the other."""
    samples = [s for s in shown.samples if not s.error]
    rows: dict[int | None, ValueView] = {r.index: r for r in shown.rows if r.index is not None}
    if not samples:
        return [(None, row) for row in shown.rows]
    return [(sample, rows.get(sample.index)) for sample in samples]


def _image(look: ValueView | None) -> Image | None:
    return image_of(look.data) if look is not None and look.kind == "image" else None


def same(pairs: Sequence[tuple[ValueView | None, ValueView | None]]) -> bool:
    """Whether the model gets what the dataset returns."""
    return all(a is not None and b is not None and (a.kind, a.data) == (b.kind, b.data) for a, b in pairs)


def _draw_pictures(
    screen: Screen, shown: PipelineLook, pairs: Sequence[tuple[ValueView | None, ValueView | None]]
) -> None:
    room = screen.width - INDENT - COLUMN
    across = max(min(len(pairs), AT_MOST, (room + 2) // (SMALLEST + 2)), 1)
    wide = min(LARGEST, (room + 2) // across - 2)
    alike = bool(pairs) and same(pairs)
    if len(pairs) <= AT_MOST:
        pairs = pairs[:across]  # one row is enough to see what they are; more were not asked for
    for first in range(0, len(pairs), across):
        some = pairs[first : first + across]
        firsts, seconds = [a for a, _ in some], [b for _, b in some]
        name = "both" if alike else "dataset"
        _draw_row(screen, name, firsts, room, wide)
        if not alike:
            _draw_row(screen, shown.rows_of, seconds, room, wide)
    if shown.samples and shown.rows and not any(b for _, b in pairs):
        rows = list(shown.rows[:across])
        _draw_row(screen, shown.rows_of, rows, room, wide)


def _draw_row(screen: Screen, label: str, looks: Sequence[ValueView | None], room: int, wide: int) -> None:
    pictures = [(_captioned(look), image) for look in looks if look is not None and (image := _image(look))]
    for n, row in enumerate(gallery(screen, pictures, room, wide)):
        screen.row(row, indent=INDENT, label="" if n else label, column=COLUMN)


def _captioned(look: ValueView) -> Exhibit:
    title = look.title.removeprefix("sample ")
    return Exhibit(look.kind, f"{title}: {look.label}" if look.label else title, look.data)


def _draw_lines(
    screen: Screen, shown: PipelineLook, pairs: Sequence[tuple[ValueView | None, ValueView | None]]
) -> None:
    """Text, waves and numbers: a line for each sample, one beneath where the model gets something else."""
    room = screen.width - INDENT - COLUMN
    looks = [look for pair in pairs for look in pair if look is not None]
    wide = max((len(_head(look)) for look in looks), default=0) + 2
    arrow = screen.glyphs.arrow
    for a, b in pairs:
        first = a if a is not None else b
        if first is None:
            continue
        label = neutral(first.title.removeprefix("sample "), COLUMN - 1)
        line = f"{_head(first).ljust(wide)}{line_of(screen, first, room - wide)}"
        screen.row(screen.text(line), indent=INDENT, label=label, column=COLUMN)
        if a is not None and b is not None and (a.kind, a.data) != (b.kind, b.data):
            text = f"{arrow} {shown.rows_of}".ljust(wide)
            screen.row(f"{text}{line_of(screen, b, room - len(text))}", indent=INDENT, column=COLUMN)


def _head(look: ValueView) -> str:
    return neutral(look.label, 24)


def line_of(screen: Screen, look: ValueView, room: int) -> str:
    """One line that fits."""
    if look.kind == "text":
        return cut_end(neutral(str(look.data), 4 * room), room)
    if look.kind == "wave":
        values = numbers(look.data)
        rate = f"  {look.rate:,} Hz" if look.rate else ""
        peak = max((abs(v) for v in values), default=0.0)
        drawn = sparkline(_envelope(values, min(WAVE, room - 30)), WAVE, plain=screen.glyphs.plain)
        return f"{drawn}  peak {number(peak)}{rate}"
    if look.kind == "image":
        return "a picture"
    return rows_of_numbers(look.data, room)[0] if look.data else ""


def _envelope(values: Sequence[float], width: int) -> list[float]:
    """The loudest of every stretch."""
    count = max(min(width, len(values)), 1)
    edges = [n * len(values) // count for n in range(count + 1)]
    return [max((abs(v) for v in values[a:b]), default=0.0) for a, b in pairwise(edges)]
