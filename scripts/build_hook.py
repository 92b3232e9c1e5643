"""Hatch build hook: builds the statistics kernel and the page of `clew ui`.

Neither may stop an install: without a C compiler the wheel is pure Python and slower, and without Node and a
network `clew ui` says how to build its page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))  # hatchling loads this file by its path

import build_kernel
import build_ui


class BuildHook(BuildHookInterface[Any]):
    """Called by hatchling: a wheel contains kernel and page, an sdist the page and the kernel's source."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        self._build_page(root)
        if self.target_name == "wheel":
            self._build_kernel(root, version, build_data)

    def _build_page(self, root: Path) -> None:
        try:
            build_ui.build(root)
        except (build_ui.BuildError, OSError) as e:
            self.app.display_warning(f"Building without the page of `clew ui`: {e}")

    def _build_kernel(self, root: Path, version: str, build_data: dict[str, Any]) -> None:
        library = build_kernel.compile_kernel(root)
        if library is None:
            self.app.display_warning("No C compiler: building without the statistics kernel (slower).")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{build_kernel.platform_tag()}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"clew/measure/kernel/{library.name}"
