"""`clew ui` as people start it: a real process, a real socket, real signals."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from web_runs import begin, make_run, writer_of

from clew.cli.ui import has_screen
from clew.store.read.run_folders import create_run

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 60


class Served:
    """A running `clew ui`."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        self.base, _, self.token = address.partition("?token=")

    def request(self, path: str) -> urllib.request.Request:
        return urllib.request.Request(self.base + path, headers={"Authorization": f"Bearer {self.token}"})

    def get(self, path: str):
        with urllib.request.urlopen(self.request(path), timeout=PATIENCE) as answer:
            return json.load(answer)

    def events(self, path: str):
        """The events of a stream as they come: name and data."""
        with urllib.request.urlopen(self.request(path), timeout=PATIENCE) as stream:
            name = ""
            for line in stream:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text.removeprefix("event: ")
                elif text.startswith("data: "):
                    yield name, json.loads(text.removeprefix("data: "))


@contextmanager
def serving(root: Path, *options: str):
    command = [sys.executable, "-m", "clew", "ui", str(root), "--no-open", *options]
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    try:
        yield Served(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


def ended(served: Served, number: int) -> tuple[int, str, str]:
    served.process.send_signal(number)
    out, err = served.process.communicate(timeout=PATIENCE)
    return served.process.returncode, out, err


def test_the_address_stands_alone_on_stdout_and_the_tunnel_on_stderr(tmp_path):
    make_run(tmp_path, steps=20)
    with serving(tmp_path, "--port", "0") as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", served.address)
        assert served.get("api/v1/runs")["runs"][0]["state"] == "finished"
        port = served.base.rpartition(":")[2].strip("/")
        code, out, err = ended(served, signal.SIGINT)
    assert code == 0
    assert out == ""
    assert f"ssh -L {port}:127.0.0.1:{port} " in err
    assert "warning" not in err or "not built" in err
    assert "Traceback" not in err


def test_ctrl_c_ends_it_also_while_somebody_listens(tmp_path):
    make_run(tmp_path, steps=20)
    with serving(tmp_path, "--port", "0") as served:
        stream = served.events("api/v1/events")
        next(stream)
        began = time.monotonic()
        code, _, err = ended(served, signal.SIGINT)
    assert code == 0
    assert time.monotonic() - began < 30
    assert "Traceback" not in err
    assert "Cancel" not in err


def test_without_a_port_a_second_server_finds_another(tmp_path):
    with serving(tmp_path) as first, serving(tmp_path) as second:
        assert first.base != second.base
        assert first.get("api/v1/runs")["runs"] == second.get("api/v1/runs")["runs"] == []
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(second.base + f"?token={first.token}", timeout=PATIENCE)
        assert refused.value.code == 401
        refused.value.close()


def test_a_taken_port_that_was_asked_for_is_refused_in_one_line(tmp_path):
    with serving(tmp_path, "--port", "0") as served:
        port = served.base.rpartition(":")[2].strip("/")
        command = [sys.executable, "-m", "clew", "ui", str(tmp_path), "--no-open", "--port", port]
        env = {**os.environ, "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert port in done.stderr


def test_opening_it_to_the_network_is_warned_of(tmp_path):
    with serving(tmp_path, "--port", "0", "--host", "0.0.0.0") as served:
        _, _, err = ended(served, signal.SIGTERM)
    assert "warning: open to the network" in err


def test_several_viewers_hear_of_a_run_as_it_grows_ends_and_goes(tmp_path):
    run = create_run(tmp_path, {"script": "train.py"})
    writer = writer_of(run)
    every, _, _ = begin(writer)
    writer.row(every, 0, [1.0])
    assert writer.flush()
    with serving(tmp_path, "--port", "0") as served:
        heard: list[list[tuple[str, dict]]] = [[], []]

        def listen(n: int) -> None:
            for event in served.events(f"api/v1/runs/{run.name}/events"):
                heard[n].append(event)

        threads = [threading.Thread(target=listen, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        wait_for(lambda: all(heard))
        for step in range(1, 50):
            writer.row(every, step, [1.0])
        writer.close("finished")
        wait_for(lambda: all(h[-1][1].get("state") == "finished" for h in heard))
        wait_for(lambda: all(h[-1][1].get("verdict") not in (None, "pending") for h in heard))
        shutil.rmtree(run)
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    for events in heard:
        assert events[0][0] == "run"
        assert (events[0][1]["state"], events[0][1]["steps"]) == ("running", 1)
        versions = [data["version"] for name, data in events if name == "run"]
        assert versions == sorted(versions)
        assert any(data.get("steps") == 50 for _, data in events)
        assert events[-1] == ("gone", {"id": run.name})


def test_the_list_hears_of_runs_that_come_and_go(tmp_path):
    with serving(tmp_path, "--port", "0") as served:
        stream = served.events("api/v1/events")
        assert next(stream) == ("runs", {"runs": [], "gone": []})
        run = make_run(tmp_path, steps=20)
        came = first(stream, lambda data: data["runs"])
        assert came["runs"][0]["id"] == run.name
        shutil.rmtree(run)
        assert first(stream, lambda data: data["gone"])["gone"] == [run.name]


def test_a_project_folder_stands_for_its_runs(tmp_path):
    run = make_run(tmp_path / ".clew" / "runs", steps=20)
    with serving(tmp_path, "--port", "0") as served:
        assert [row["id"] for row in served.get("api/v1/runs")["runs"]] == [run.name]


def test_a_run_folder_is_shown_alone(tmp_path):
    make_run(tmp_path, steps=20)
    chosen = make_run(tmp_path, steps=20)
    with serving(chosen, "--port", "0") as served:
        assert [row["id"] for row in served.get("api/v1/runs")["runs"]] == [chosen.name]


def first(stream, wanted) -> dict:
    return next(data for _, data in stream if wanted(data))


def wait_for(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_browser_is_opened_only_where_somebody_would_see_it(monkeypatch):
    for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not has_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    assert has_screen()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22")
    assert not has_screen()


def test_the_view_and_the_report_need_no_torch(tmp_path):
    run = make_run(tmp_path, steps=20)
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import clew.cli.ui, clew.cli.report, clew.web.server\n"
        "import clew.web.answers.report_file, clew.web.runs.run_digest\n"
        "from clew.web.answers.api_answers import ApiAnswers\n"
        "from pathlib import Path\n"
        f"answers = ApiAnswers.at(Path({str(tmp_path)!r}))\n"
        f"print(answers.run({run.name!r})['run']['steps']); answers.close()"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert done.stdout == "20\n", done.stderr
