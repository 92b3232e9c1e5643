"""`--print-shapes`: prints the input and output shapes of each layer, and again when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity

if TYPE_CHECKING:
    from clew.hooks.collect_layers.shape_printer import ShapePrinter
    from clew.hooks.entry.guard import Guard


class ShapesActivity(Activity):
    """Has hooks of its own, installed as long as the seams are."""

    name = "shapes"
    _printer: ShapePrinter | None = None

    def attached(self, guard: Guard) -> None:
        """Print from here on."""
        from clew.hooks.collect_layers.shape_printer import ShapePrinter

        self._printer = ShapePrinter(lambda line: self._session.say(line, prefix=""))
        self._printer.install(guard.probe)

    def detached(self) -> None:
        """Remove the hooks."""
        if self._printer is not None:
            self._printer.remove()
