"""`clew run --print-shapes`, where the session is paused and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from clew.session.run_options import RunOptions
from clew.session.session import Session


def test_shapes_are_printed_again_after_a_pause_and_only_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Session(RunOptions("train.py", root=tmp_path, print_shapes=True))
    session.start()
    layer = nn.Linear(3, 4)
    layer(torch.zeros(2, 3))
    session.pause()
    layer(torch.zeros(5, 3))
    session.resume()
    session.resume()  # as after a pause that was not needed
    layer(torch.zeros(2, 3))
    layer(torch.zeros(6, 3))
    session.close()
    layer(torch.zeros(7, 3))
    printed = [line for line in capsys.readouterr().err.splitlines() if line.startswith("shapes:")]
    assert printed == ["shapes: Linear  2×3 → 2×4", "shapes: Linear  6×3 → 6×4  (new)"]
