import subprocess
import sys
from pathlib import Path

import clew

DOCS = Path(__file__).parents[2] / "docs"


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
        "extend",
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
    program = (
        "import clew.hooks.seams.torch_hooks, clew; assert callable(clew.attach); print(clew.attach.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "attach\n"


def test_importing_clew_imports_neither_torch_nor_numpy():
    program = "import clew, sys; print({'torch', 'numpy', 'rich', 'click'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_run_is_read_judged_and_shown_without_torch():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import clew.store.read.run_reader, clew.store.index.series_index\n"
        "import clew.checks.runner, clew.checks.catalog\n"
        "import clew.render.verdict.verdict_terminal, clew.cli.why, clew.cli.runs, clew.cli.explain\n"
        "print('ok')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ok\n"


def test_every_recorded_signal_fact_and_event_is_documented():
    """The contract between the rooms names everything that the attached code writes."""
    from clew.hooks.collect_loop import batch_stats, loss_calls, model_outputs
    from clew.hooks.steps.step_clock import STEP_SIGNALS
    from clew.records.signals import MEASURED, find

    text = (DOCS / "signals.md").read_text()
    statistics = {name for entry in MEASURED for name in entry.names}
    recorded = [*STEP_SIGNALS, *batch_stats.INPUT_NAMES, *batch_stats.TARGET_NAMES]
    for name in [*recorded, *loss_calls.INPUT_NAMES, *model_outputs.OUTPUT_NAMES]:
        written = f"{name.partition('.')[0]}.*" if name in statistics else name
        assert f"`{written}`" in text, name
        assert find(name) is not None, name
