import subprocess
import sys
from pathlib import Path

import clew

DOCS = Path(__file__).parent.parent / "docs"


def test_the_exported_names_are_exactly_these():
    assert clew.__all__ == [
        "NonFiniteError",
        "__version__",
        "attach",
        "batch_sizes",
        "config",
        "data",
        "describe",
        "describe_tensors",
        "examine",
        "graph",
        "ignore",
        "log",
        "open_run",
        "profile",
        "register",
        "summary",
        "trace_numerics",
        "try_faster",
        "visit",
    ]
    assert all(getattr(clew, name) is not None for name in clew.__all__)
    assert dir(clew) == sorted(clew.__all__)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(clew, "atach")


def test_attach_is_the_function_whatever_was_imported_before():
    program = "import clew.attach.seams, clew; assert callable(clew.attach); print(clew.attach.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "attach\n"


def test_importing_clew_imports_neither_torch_nor_numpy():
    program = "import clew, sys; print({'torch', 'numpy', 'rich', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_run_is_read_judged_and_shown_without_torch():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import clew.store.reader, clew.store.index, clew.checks.runner, clew.checks.catalog\n"
        "import clew.show.terminal, clew.cli.why, clew.cli.runs, clew.cli.explain\n"
        "print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"


def test_every_recorded_signal_fact_and_event_is_documented():
    """The contract between the rooms names everything that the attached code writes."""
    from clew.attach import batches, losses, outputs, steps
    from clew.signals import MEASURED, find

    text = (DOCS / "signals.md").read_text()
    statistics = {name for entry in MEASURED for name in entry.names}
    recorded = (steps.STEP_SIGNALS, batches.INPUT_NAMES, batches.TARGET_NAMES, losses.INPUT_NAMES)
    for name in (name for some in (*recorded, outputs.OUTPUT_NAMES) for name in some):
        written = f"{name.partition('.')[0]}.*" if name in statistics else name
        assert f"`{written}`" in text, name
        assert find(name) is not None, name
