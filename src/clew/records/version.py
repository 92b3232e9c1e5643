"""Version of Clew and of its run format; a file of its own, so that every package can import it."""

from __future__ import annotations

import os

__version__ = "0.1.0"

FORMAT_VERSION = 1  # of the run folder; a reader refuses a higher one

# The folder of this package, with a separator at its end: frames and files below it are ours.
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
DEMO = os.path.join(PACKAGE, "demo", "")  # except the demo, which plays the user
