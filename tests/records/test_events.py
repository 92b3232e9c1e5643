"""Events are written and read as the log has always had them."""

from __future__ import annotations

import pytest

from clew.records.events import (
    CheckpointSaveEvent,
    ExceptionEvent,
    InterruptEvent,
    ModeEvent,
    TypedEvent,
    events_of,
)
from clew.records.register_page import EVENTS
from clew.store.read.run_data import Event


class Written:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, kind: str, step: int, data: dict) -> None:
        self.events.append(Event(kind, step, 0.0, data))


def test_the_names_in_the_log_stay():
    assert sorted(EVENTS) == [
        "checkpoint-load",
        "checkpoint-save",
        "exception",
        "interrupt",
        "mode",
        "stopped",
    ]
    raised = ExceptionEvent(type="KeyError", message="x", user_file="train.py", user_line=3)
    assert raised.to_json() == {"type": "KeyError", "message": "x", "user_file": "train.py", "user_line": 3}
    assert ModeEvent("net", True).to_json() == {"root": "net", "training": True, "file": None, "line": None}
    assert CheckpointSaveEvent("a.py", 4).to_json() == {"file": "a.py", "line": 4}


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_an_event_is_read_as_it_was_written(kind: str):
    event: TypedEvent = EVENTS[kind].read({"file": "a.py", "line": 4, "message": "no", "training": False}, 7)
    sink = Written()
    event.write(sink, 7)
    assert events_of(EVENTS[kind], sink.events) == [event]
    others = [other for other in EVENTS.values() if other is not EVENTS[kind]]
    assert not any(events_of(other, sink.events) for other in others)


@pytest.mark.parametrize("data", [None, "text", [1], {"message": 5, "user_line": "three"}])
def test_a_damaged_event_keeps_its_defaults(data: object):
    read = events_of(InterruptEvent, [Event("interrupt", 2, 0.0, data)])
    assert read == [InterruptEvent(step=2)]
