"""A profile as files: each is opened by the tool it is meant for, or read by the rules of its format."""

from __future__ import annotations

import csv
import gzip
import json
import pstats
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sample_profiles import HOSTILE, convolutions, deep, frame, hostile, python_flame, transformer
from trace_events import crossing, read_trace

from clew.records.step_costs import FlameFrame, Profile
from clew.render import html_bundle
from clew.render.profile.profile_exports import FORMATS, CannotExport, export
from clew.render.profile.recorded_profile import NoProfile, read_profile
from clew.render.verdict_json import write_json


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "20261115-215301-train-a1b2"
    (folder / "traces").mkdir(parents=True)
    return folder


def exported(profile: Profile, run: Path, name: str) -> Path:
    (path,) = export(profile, run, run.parent / "out", [name])
    return path


def rows_of(profile: Profile, run: Path) -> list[list[str]]:
    with exported(profile, run, "csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_all_formats_are_written_and_named(run: Path, tmp_path: Path) -> None:
    written = export(convolutions(), run, tmp_path / "new" / "folder", FORMATS)
    assert [path.name for path in written] == [
        "profile.csv",
        "profile.pt.trace.json.gz",
        "profile.pt.trace.json",
        "profile.prof",
        "profile.speedscope.json",
        "profile.html",
    ]
    assert all(path.stat().st_size > 100 for path in written)


def test_what_a_profile_has_nothing_of_is_not_written(run: Path, tmp_path: Path) -> None:
    assert export(Profile(), run, tmp_path / "out") == []
    assert [p.name for p in export(transformer(), run, tmp_path / "out")] == ["profile.csv"]


def test_an_unknown_format_and_a_folder_that_is_a_file_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotExport, match="no such format: 'pdf'; available: csv, chrome"):
        export(convolutions(), run, tmp_path, ["pdf"])
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotExport, match="can't write to"):
        export(convolutions(), run, tmp_path / "file", ["csv"])


def test_without_the_browsers_page_the_other_files_are_written_and_that_is_said(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_bundle, "STATIC", tmp_path / "nothing")
    with pytest.raises(CannotExport, match=r"profile\.html was not written: the page is not built") as caught:
        export(convolutions(), run, tmp_path / "out", ["html", "csv"])
    assert "\n" not in str(caught.value)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["profile.csv"]


def test_csv_has_a_row_for_each_op_with_times_of_one_run(run: Path) -> None:
    rows = rows_of(convolutions(), run)
    assert rows[0] == [
        "parameter scope",
        "function name",
        "input shapes",
        "arguments",
        "forward",
        "backward",
        "runs",
    ]
    scope, name, shapes, arguments, forward, backward, runs = rows[1]
    assert (scope, name, arguments) == ("features.0", "aten::convolution", "1, 1, 1")
    assert shapes == "[64, 3, 32, 32] [32, 3, 3, 3]"
    assert (float(forward), float(backward), int(runs)) == (0.0041, 0.0071, 24)


def test_csv_divides_by_the_calls_of_a_step(run: Path) -> None:
    op = replace(convolutions().ops[0], calls=4.0)
    row = rows_of(replace(convolutions(), ops=(op,)), run)[1]
    assert (float(row[4]), int(row[6])) == (pytest.approx(0.0041 / 4), 96)


def test_csv_of_a_profile_without_ops_lists_the_modules(run: Path) -> None:
    rows = rows_of(transformer(), run)
    assert rows[2][:2] == ["embed", "Embedding"]
    assert len(rows) == len(transformer().modules) + 1


def test_no_spreadsheet_takes_a_name_for_a_formula(run: Path) -> None:
    rows = rows_of(hostile(), run)
    assert [cell[0] for cell in rows[1][1:4]] == ["'", "'", "'"]
    assert rows[2][3] == "-1"


def test_snakeviz_reads_the_sampled_stacks(run: Path) -> None:
    from snakeviz.stats import json_stats, table_rows

    loaded = pstats.Stats(str(exported(convolutions(), run, "pstats")))
    assert "data.py:9(fetch)" in [row[5] for row in table_rows(loaded)]
    tree = json_stats(loaded)
    fetch = next(value for key, value in tree.items() if "fetch" in key)
    assert fetch["stats"][3] == pytest.approx(24 * 0.011)
    assert [key for key in fetch["callers"] if "<module>" in key]


def test_pstats_counts_a_function_inside_itself_once(run: Path) -> None:
    stats = pstats.Stats(str(exported(convolutions(), run, "pstats"))).stats  # type: ignore[attr-defined]
    outermost, calls, own, total, callers = stats[("data.py", 5, "walk")]
    assert (outermost, calls) == (1, 2)
    assert (own, total) == (pytest.approx(24 * 0.004), pytest.approx(24 * 0.004))
    assert set(callers) == {("data.py", 9, "fetch"), ("data.py", 5, "walk")}
    assert stats[("data.py", 20, "decode")] != stats[("net.py", 7, "decode")]


def test_pstats_own_times_add_up_to_the_whole(run: Path) -> None:
    loaded = pstats.Stats(str(exported(convolutions(), run, "pstats")))
    assert loaded.total_tt == pytest.approx(24 * python_flame().value)  # type: ignore[attr-defined]


def test_what_cprofile_has_written_itself_is_handed_on(run: Path) -> None:
    import cProfile

    profiler = cProfile.Profile()
    profiler.runcall(sorted, range(10))
    profiler.dump_stats(run / "traces" / "steps.prof")
    profile = replace(convolutions(), files={"cprofile": "steps.prof"})
    stats = pstats.Stats(str(exported(profile, run, "pstats"))).stats  # type: ignore[attr-defined]
    assert [name for _, _, name in stats if "sorted" in name]


def schema() -> Any:
    return json.loads(Path(__file__).with_name("speedscope_schema.json").read_text())


@pytest.mark.parametrize("profile", [convolutions(), hostile()], ids=["convolutions", "hostile"])
def test_speedscope_file_holds_to_its_format(profile: Profile, run: Path) -> None:
    data = json.loads(exported(profile, run, "speedscope").read_text())
    jsonschema.validate(data, schema())
    for one in data["profiles"]:
        assert len(one["samples"]) == len(one["weights"])
        assert one["endValue"] == pytest.approx(sum(one["weights"]))
        assert max(index for stack in one["samples"] for index in stack) < len(data["shared"]["frames"])


def test_speedscope_has_time_python_and_memory_with_their_stacks(run: Path) -> None:
    data = json.loads(exported(convolutions(), run, "speedscope").read_text())
    assert [(p["name"], p["unit"]) for p in data["profiles"]] == [
        ("time of a step", "seconds"),
        ("Python in a step", "seconds"),
        ("memory at the peak", "bytes"),
    ]
    names = [f["name"] for f in data["shared"]["frames"]]
    stacks = [[names[i] for i in stack] for stack in data["profiles"][0]["samples"]]
    assert ["step", "forward", "features", "features.0"] in stacks
    assert data["profiles"][0]["endValue"] == pytest.approx(0.0412)


@pytest.mark.parametrize("name", ["chrome", "chrome-plain"])
def test_without_a_trace_of_its_own_the_kept_step_is_one(name: str, run: Path) -> None:
    events = read_trace(exported(convolutions(), run, name))
    assert [e["name"] for e in events if e["ph"] == "X"] == ["data", "forward", "features.0"]
    assert crossing(events) == []
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert lanes == {0: "parts", 1: "main"}


def test_hostile_names_and_times_make_no_invalid_trace(run: Path) -> None:
    events = read_trace(exported(hostile(), run, "chrome-plain"))
    assert [e["name"] for e in events if e["ph"] == "X"] == [HOSTILE]


@pytest.fixture(scope="module")
def kineto(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace of two real steps, as torch's profiler writes it."""
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(2):
            model(torch.ones(4, 8)).sum().backward()
    file = tmp_path_factory.mktemp("kineto") / "trace.json"
    profiler.export_chrome_trace(str(file))
    return file.read_bytes()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["chrome", "chrome-plain"])
def test_the_profilers_own_trace_is_handed_on_packed_or_plain(
    name: str, packed: bool, run: Path, kineto: bytes
) -> None:
    file = run / "traces" / ("window.json.gz" if packed else "window.json")
    file.write_bytes(gzip.compress(kineto) if packed else kineto)
    events = read_trace(exported(replace(convolutions(), files={"chrome trace": file.name}), run, name))
    assert [e for e in events if e["name"] == "aten::addmm"]


def test_the_trace_opens_in_tensorboards_pytorch_plugin(run: Path, kineto: bytes) -> None:
    from torch_tb_profiler import consts
    from torch_tb_profiler.profiler.data import RunProfileData

    (run / "traces" / "window.json.gz").write_bytes(gzip.compress(kineto))
    path = exported(replace(convolutions(), files={"chrome trace": "window.json.gz"}), run, "chrome")
    assert consts.WORKER_PATTERN.match(path.name)
    loaded = RunProfileData.parse("worker", "span", str(path), str(run.parent))
    assert [event.name for event in loaded.events if event.name == "aten::addmm"]


@pytest.mark.parametrize("name", ["../run.json", "/etc/passwd", "..", "gone.json", ""])
def test_no_file_from_outside_the_runs_traces_is_handed_on(name: str, run: Path) -> None:
    (run / "run.json").write_text('{"traceEvents": "secret"}')
    profile = replace(convolutions(), files={"chrome trace": name})
    assert "secret" not in exported(profile, run, "chrome-plain").read_text()


def test_no_link_out_of_the_run_is_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"traceEvents": "secret"}')
    (run / "traces" / "link.json").symlink_to(tmp_path / "secret.json")
    profile = replace(convolutions(), files={"chrome trace": "link.json"})
    assert "secret" not in exported(profile, run, "chrome-plain").read_text()


@pytest.mark.parametrize("name", ["pstats", "speedscope", "html"])
def test_stacks_of_any_depth_are_written(name: str, run: Path) -> None:
    assert exported(replace(convolutions(), python=deep(), flame=deep()), run, name).stat().st_size > 1000


def test_a_recorded_profile_is_read_back_as_it_was(run: Path) -> None:
    (run / "traces" / "profile.json").write_text(json.dumps(convolutions().to_json()))
    assert read_profile(run) == convolutions()


@pytest.mark.parametrize("text", ["", "[]", "{", "7", '{"modules": NaN', "[" * 100_000])
def test_a_damaged_profile_is_refused_in_one_line(text: str, run: Path) -> None:
    (run / "traces" / "profile.json").write_text(text)
    with pytest.raises(NoProfile, match="can't be read") as caught:
        read_profile(run)
    assert "\n" not in str(caught.value)


def test_a_run_without_a_profile_says_how_to_make_one(run: Path) -> None:
    with pytest.raises(NoProfile, match=r"has no profile; record one with: clew profile train\.py"):
        read_profile(run)


def test_what_does_not_fit_is_left_at_its_default(run: Path) -> None:
    data = {
        "version": 9,
        "step_median": NaN,
        "flame": {"root": {"name": 3}},
        "memory": [],
        "parts": [{"name": 1}],
    }
    (run / "traces" / "profile.json").write_text(json.dumps(data))
    assert read_profile(run) == Profile()


NaN = float("nan")


def test_flames_survive_json_whatever_is_in_them() -> None:
    assert FlameFrame.from_json(python_flame().to_json()) == python_flame()
    assert FlameFrame.from_json(
        {"name": "a", "value": 1, "children": [{"no": 1}, 5, {"name": "b", "value": 2}]}
    ) == (FlameFrame("a", 1.0, children=(FlameFrame("b", 2.0),)))
    for nothing in (None, 3, [], {"value": 1.0}):
        assert FlameFrame.from_json(nothing) is None
    cut = FlameFrame.from_json(deep().to_json())
    assert cut is not None
    assert max(depth for depth, _ in cut.walk()) == 149
    json.dumps(cut.to_json())
    assert frame("x", 2.0, frame("y", 1.0)).to_json()["children"][0]["name"] == "y"


def test_a_profile_with_the_deepest_stacks_is_written_densely(run: Path) -> None:
    profile = replace(convolutions(), python=deep(), flame=deep())
    write_json(run / "traces" / "profile.json", profile.to_json(), dense=True)
    assert (run / "traces" / "profile.json").stat().st_size < 100_000
    assert read_profile(run).python is not None
