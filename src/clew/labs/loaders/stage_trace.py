"""Traces samples through the stages: the input, the output and the time of each.

Every stage is replaced by one that calls the original and notifies a listener; afterwards the
originals are restored. The replacements pass for the originals (`isinstance`, attributes).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from clew.labs.loaders.dataset_stages import READ, DatasetStage


@dataclass
class StageCall:
    """One call of a stage, reported when it has returned (or raised: then `error` is set)."""

    stage: DatasetStage
    depth: int  # 0: called by the loader; 1: within another stage …
    given: tuple[Any, ...] = ()
    result: Any = None
    seconds: float = 0.0  # including the listener's time in nested stages
    inner: float = 0.0  # of it in nested stages
    error: BaseException | None = None

    @property
    def own(self) -> float:
        """Seconds in the stage itself."""
        return max(self.seconds - self.inner, 0.0)


Listener = Callable[[StageCall], None]


@dataclass
class StageFollower:
    """Notifies a listener of every call, innermost first."""

    listener: Listener
    entering: Listener | None = None  # called when a call begins
    open: list[StageCall] = field(default_factory=list)

    def call(self, stage: DatasetStage, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a stage's function."""
        call = StageCall(stage, len(self.open), args)
        if self.entering is not None:
            self._tell(self.entering, call)
        self.open.append(call)
        began = perf_counter()
        try:
            call.result = function(*args, **kwargs)
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.seconds = perf_counter() - began
            self.open.pop()
            if self.open:
                self.open[-1].inner += call.seconds
            self._tell(self.listener, call)
        return call.result

    def _tell(self, listener: Listener, call: StageCall) -> None:
        """The listener's own time is not charged to any stage."""
        began = perf_counter()
        listener(call)
        if self.open:
            self.open[-1].inner += perf_counter() - began


@contextlib.contextmanager
def followed(stages: Iterable[DatasetStage], follower: StageFollower) -> Iterator[None]:
    """Inside it, the follower sees every stage that can be replaced."""
    placed: list[DatasetStage] = []
    try:
        for stage in stages:
            if stage.put is not None:
                kind = _FollowedDataset if stage.kind == READ else _Followed
                stage.put(kind(stage, follower))
                placed.append(stage)
        yield
    finally:
        for stage in reversed(placed):
            assert stage.put is not None
            stage.put(stage.value)


class _Followed:
    """Stands in for a callable."""

    def __init__(self, stage: DatasetStage, follower: StageFollower) -> None:
        object.__setattr__(self, "_stage", stage)
        object.__setattr__(self, "_follower", follower)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = object.__getattribute__(self, "__dict__")
        stage = own["_stage"]
        return own["_follower"].call(stage, stage.value, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "__dict__")["_stage"].value, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "__dict__")["_stage"].value, name, value)

    def __bool__(self) -> bool:
        return bool(object.__getattribute__(self, "__dict__")["_stage"].value)

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "__dict__")["_stage"].value)

    def __iter__(self) -> Iterator[Any]:
        return iter(object.__getattribute__(self, "__dict__")["_stage"].value)

    def __getitem__(self, key: Any) -> Any:
        return object.__getattribute__(self, "__dict__")["_stage"].value[key]

    @property  # type: ignore[misc] # it is to pass for what it stands in for
    def __class__(self) -> type:
        return type(object.__getattribute__(self, "__dict__")["_stage"].value)


class _FollowedDataset(_Followed):
    """Stands in for a nested dataset."""

    def __getitem__(self, index: Any) -> Any:
        own = object.__getattribute__(self, "__dict__")
        return own["_follower"].call(own["_stage"], own["_stage"].value.__getitem__, index)

    def __iter__(self) -> Iterator[Any]:
        own = object.__getattribute__(self, "__dict__")
        iterator = iter(own["_stage"].value)
        while True:
            try:
                yield own["_follower"].call(own["_stage"], iterator.__next__)
            except StopIteration:
                return
