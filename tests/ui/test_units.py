"""The logic of the page that needs no browser: its own tests, in Node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_units_of_the_page_pass_in_node():
    command = [sys.executable, ROOT / "scripts" / "build_ui.py", "--npm", "test", "--silent"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
