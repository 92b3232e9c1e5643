"""Clew waits for an import, acts after it, and leaves no trace in the import system."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys, types
sys.path.insert(0, {folder!r})
from clew.hooks.entry.after_import import AfterImport
seen = []
waiter = AfterImport("slowmod", lambda: seen.append(sys.modules["slowmod"].value))
waiter.install()
assert waiter in sys.meta_path and seen == []
import slowmod
assert seen == [42], seen
assert waiter not in sys.meta_path
assert "clew" not in repr(slowmod.__loader__) + repr(slowmod.__spec__.loader)
import importlib
importlib.reload(slowmod)
assert seen == [42]
AfterImport("slowmod", lambda: seen.append("at once")).install()
assert seen == [42, "at once"]
print("ok")
"""


@pytest.mark.parametrize("kind", ["module", "package"])
def test_the_callback_runs_after_the_import_and_leaves_no_trace(tmp_path, kind):
    target = tmp_path / "slowmod.py" if kind == "module" else tmp_path / "slowmod" / "__init__.py"
    target.parent.mkdir(exist_ok=True)
    target.write_text("value = 42\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")
