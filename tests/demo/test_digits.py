"""The demo stands in for the user's script: without its two planted faults it is healthy."""

from __future__ import annotations

from pathlib import Path

from clew_command import clew as clew_in

import clew.demo


def test_mended_demo_is_healthy(tmp_path: Path) -> None:
    script = (Path(clew.demo.__file__).parent / "digits.py").read_text()
    mended = script.replace(
        "        loss.backward()", "        optimizer.zero_grad()\n        loss.backward()"
    )
    mended = mended.replace("torch.softmax(self.head(self.hidden(x)), dim=1)", "self.head(self.hidden(x))")
    (tmp_path / "digits.py").write_text(mended)
    done = clew_in(tmp_path, "run", "--fail-on", "warning", "digits.py")
    assert done.returncode == 0, done.stderr
    assert "no problems found" in done.stderr
