"""Runs a program through the launcher, with the launcher's own end: `drive.py [-m] program args…`."""

from __future__ import annotations

import sys

from clew.hooks.entry import launcher

if __name__ == "__main__":
    if sys.argv[1] == "-m":
        outcome = launcher.run_module(sys.argv[2], sys.argv[3:])
    else:
        outcome = launcher.run_script(sys.argv[1], sys.argv[2:])
    launcher.leave(outcome)
