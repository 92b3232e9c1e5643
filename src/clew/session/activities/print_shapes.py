"""`--print-shapes`: prints the input and output shapes of each layer, and again when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.render.stderr_messages import say
from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.collect_layers.shape_printer import ShapePrinter
    from clew.hooks.entry.guard import Guard


class PrintShapes(Activity):
    """Installs hooks of its own while the seams are installed."""

    name = "shapes"
    _printer: ShapePrinter | None = None

    def attached(self, guard: Guard) -> None:
        """Print from here on; shapes that were printed before a pause are not printed again."""
        from clew.hooks.collect_layers.shape_printer import ShapePrinter

        self._printer = self._printer or ShapePrinter(say)
        self._printer.install(guard.probe)

    def detached(self) -> None:
        """Remove the hooks."""
        if self._printer is not None:
            self._printer.remove()
