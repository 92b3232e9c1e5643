"""What this Clew is called; on its own, so that every room may know it."""

from __future__ import annotations

import os

__version__ = "0.1.0"

FORMAT_VERSION = 1  # of the run folder; a reader refuses a higher one

# The folder of this package, with a separator at its end: frames and files below it are ours.
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
DEMO = os.path.join(PACKAGE, "demo", "")  # but the demo plays the user
