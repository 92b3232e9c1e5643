"""What is known of a run in progress: written by the log's thread, read by the training's."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clew
import clew.session.live_judge
from clew.session.live_judge import LiveJudge
from clew.store.read.run_data import RunData
from clew.store.write.frames import encode_json

FACTS = [encode_json({"t": "fact", "kind": "note", "step": n, "data": {}}) for n in range(20)]


@pytest.mark.parametrize("torch_is_there", [True, False])
def test_nothing_is_lost_when_two_threads_are_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_is_there: bool
) -> None:
    with clew.attach(run_root=tmp_path, quiet=True) as session:
        pass
    judge = LiveJudge(session)
    make = RunData.__init__
    modules = {"torch": None} if torch_is_there else {}
    monkeypatch.setattr(clew.session.live_judge, "sys", SimpleNamespace(modules=modules))

    def slowly(self: RunData, **options: Any) -> None:
        make(self, **options)
        time.sleep(0.2 if threading.current_thread() is not thread else 0.02)  # ours would come second

    def feed() -> None:
        for payload in FACTS:
            judge.feed(payload)
            time.sleep(0.002)

    monkeypatch.setattr(RunData, "__init__", slowly)
    thread = threading.Thread(target=feed)
    thread.start()
    found = judge.data
    thread.join()
    assert judge.data is found
    assert [fact.step for fact in found.facts] == list(range(len(FACTS)))
