"""One sample through every stage: what came in, what went out, and what there is to see of it."""

from __future__ import annotations

from clew.records.finding import Exhibit
from clew.records.sample_views import StageLook, Way
from clew.render.cost_text import span
from clew.render.data.field_text import briefly
from clew.render.data.loader_screen import cut_end, line_of
from clew.render.images import image_of
from clew.render.safe_text import neutral, short_path
from clew.render.screen import Screen
from clew.render.verdict.sample_gallery import gallery

INDENT = 2
READ = "read"  # a dataset itself: what it was given is an index
WIDE = 24  # columns of a picture


def draw_way(screen: Screen, way: Way, name: str) -> None:
    """Stage after stage, each with its time and what it changed."""
    title = screen.text(f"sample {way.index}", "bold")
    screen.block(screen.join(title, f" of {neutral(name, 60)}, stage by stage"))
    if any(stage.random for stage in way.stages):
        screen.block(screen.text(f"random stages ran once, with seed {way.seed}", "dim"), indent=INDENT)
    before = None
    for stage in way.stages:
        screen.blank()
        _draw_stage(screen, stage, before)
        before = stage
    if way.error:
        screen.blank()
        screen.block(screen.text(neutral(way.error), "bold red"), indent=INDENT, label="error", column=9)


def _draw_stage(screen: Screen, stage: StageLook, before: StageLook | None) -> None:
    dot = f" {screen.glyphs.dot} "
    place = f"{short_path(stage.file)}:{stage.line}" if stage.file else ""
    words = [stage.kind, "random" if stage.random else "", place, span(stage.seconds) if stage.kind else ""]
    said = dot.join(word for word in words if word)
    head = screen.join(screen.text(neutral(stage.name, 60), "bold"), said, gap=dot)
    screen.block(head, indent=INDENT)
    inner = INDENT + 2
    if stage.error:
        screen.block(screen.text(neutral(stage.error), "bold red"), indent=inner)
        return
    screen.row(cut_end(_change(screen, stage, before), screen.width - inner), indent=inner)
    if stage.look is None or (
        before is not None and before.look is not None and before.look.data == stage.look.data
    ):
        return
    image = image_of(stage.look.data) if stage.look.kind == "image" else None
    if image is not None:
        for row in gallery(
            screen, [(Exhibit("image", "", stage.look.data), image)], screen.width - inner, WIDE
        ):
            screen.row(row, indent=inner)
    elif stage.made is not None and (stage.made.shape or stage.look.kind == "text"):
        screen.row(line_of(screen, stage.look, screen.width - inner), indent=inner)


def _change(screen: Screen, stage: StageLook, before: StageLook | None) -> str:
    """`28×28 uint8, 0 to 255 → 1×28×28 float32, 0 to 1`."""
    made = briefly(stage.made) if stage.made is not None else "nothing"
    given = briefly(stage.given) if stage.given is not None and stage.kind != READ else ""
    if before is not None and before.made is not None and made == briefly(before.made):
        return f"{made}, unchanged" if stage.kind == READ else f"{made}: same shape and range"
    return made if not given or given == made else f"{given} {screen.glyphs.arrow} {made}"
