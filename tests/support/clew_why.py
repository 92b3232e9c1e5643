"""What `clew why --json` says, from the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"


def why_json(root: Path, run: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "clew", "why", "--json", "--dir", str(root), run]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=env)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
