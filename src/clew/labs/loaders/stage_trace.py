"""Traces samples through the stages: the input, the output and the time of each.

Every stage is replaced by one that calls the original and notifies a listener; afterwards the
originals are restored. The replacements pass for the originals (`isinstance`, attributes).

Functions known to read or decode files can be traced as well. They are replaced in their modules, for the
measuring thread. A program that has imported such a function under its own name
(`from PIL.Image import open as load`) keeps the original.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, wraps
from time import perf_counter
from typing import Any

from clew.labs.snapshot.dataset_stages import READ, DatasetStage

READER, DECODER = "reader", "decoder"  # kinds of stages, in addition to those of `dataset_stages`

# Module, dotted name in it, kind. Only modules that are already imported count.
KNOWN = (
    ("numpy", "load", READER),
    ("numpy", "loadtxt", READER),
    ("numpy", "genfromtxt", READER),
    ("numpy", "fromfile", READER),
    ("torch", "load", READER),
    ("pathlib", "Path.read_bytes", READER),
    ("pathlib", "Path.read_text", READER),
    ("pickle", "load", READER),
    ("json", "load", READER),
    ("pandas", "read_csv", READER),
    ("pandas", "read_parquet", READER),
    ("h5py", "Dataset.__getitem__", READER),
    ("soundfile", "read", READER),
    ("torchaudio", "load", READER),
    ("librosa", "load", READER),
    ("scipy.io.wavfile", "read", READER),
    ("wave", "open", READER),
    ("wave", "Wave_read.readframes", READER),
    ("cv2", "imread", READER),
    ("imageio", "imread", READER),
    ("imageio.v2", "imread", READER),
    ("imageio.v3", "imread", READER),
    ("skimage.io", "imread", READER),
    ("torchvision.io", "read_file", READER),
    ("torchvision.io", "read_image", READER),
    ("torchvision.io", "decode_image", DECODER),
    ("torchvision.io", "decode_jpeg", DECODER),
    ("torchvision.io", "decode_png", DECODER),
    ("PIL.Image", "open", READER),
    ("PIL.ImageFile", "ImageFile.load", DECODER),
    ("cv2", "imdecode", DECODER),
)
OPENED = ("read", "readinto", "readline", "readlines")  # of an open file


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

    _stage: DatasetStage
    _follower: StageFollower

    def __init__(self, stage: DatasetStage, follower: StageFollower) -> None:
        object.__setattr__(self, "_stage", stage)
        object.__setattr__(self, "_follower", follower)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._follower.call(self._stage, self._stage.value, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("_stage", "_follower"):
            raise AttributeError(name)  # a copy that is being made has neither yet
        return getattr(self._stage.value, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._stage.value, name, value)

    def __bool__(self) -> bool:
        return bool(self._stage.value)

    def __len__(self) -> int:
        return len(self._stage.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stage.value)

    def __getitem__(self, key: Any) -> Any:
        return self._stage.value[key]

    @property  # type: ignore[misc] # it is to pass for what it stands in for
    def __class__(self) -> type:
        return type(self._stage.value)


class _FollowedDataset(_Followed):
    """Stands in for a nested dataset."""

    def __getitem__(self, index: Any) -> Any:
        return self._follower.call(self._stage, self._stage.value.__getitem__, index)

    def __iter__(self) -> Iterator[Any]:
        iterator = iter(self._stage.value)
        while True:
            try:
                yield self._follower.call(self._stage, iterator.__next__)
            except StopIteration:
                return


# -- functions that read or decode files --


@contextlib.contextmanager
def reading_followed(follower: StageFollower) -> Iterator[None]:
    """Report calls of known readers to the follower, as nested stages."""
    thread = threading.get_ident()
    placed: list[tuple[Any, str, Any]] = []
    try:
        for module, path, kind in KNOWN:
            found = _found(module, path)
            if found is not None:
                owner, name, original = found
                stage = DatasetStage(_title(module, path), kind, original)
                _put(placed, owner, name, original, _follow(stage, original, follower, thread))
        opening = _opening(builtins.open, follower, thread)
        _put(placed, builtins, "open", builtins.open, opening)
        yield
    finally:
        for owner, name, original in reversed(placed):
            setattr(owner, name, original)


def _found(module: str, path: str) -> tuple[Any, str, Any] | None:
    owner: Any = sys.modules.get(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    original = vars(owner).get(name) if owner is not None and hasattr(owner, "__dict__") else None
    return (owner, name, original) if callable(original) and not isinstance(original, type) else None


def _put(placed: list[tuple[Any, str, Any]], owner: Any, name: str, original: Any, other: Any) -> None:
    try:
        setattr(owner, name, other)
    except (AttributeError, TypeError):  # a class that is not Python's own can't be changed
        return
    placed.append((owner, name, original))


def _title(module: str, path: str) -> str:
    if path == "ImageFile.load":
        return "PIL decoding"
    return f"{module}.{path}".replace(".__getitem__", "[…]")


def _follow(stage: DatasetStage, original: Any, follower: StageFollower, thread: int) -> Callable[..., Any]:
    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread or not follower.open or _within(follower, stage):
            return original(*args, **kwargs)
        return follower.call(stage, original, *args, **kwargs)

    return call


def _within(follower: StageFollower, stage: DatasetStage) -> bool:
    """A reader that calls itself, as an already loaded image does, is one call."""
    return follower.open[-1].stage is stage


def _opening(original: Any, follower: StageFollower, thread: int) -> Callable[..., Any]:
    stage = DatasetStage("reading files", READER, original)
    opened = _follow(stage, original, follower, thread)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        file = opened(*args, **kwargs)
        if threading.get_ident() == thread and follower.open:
            _follow_file(file, stage, follower, thread)
        return file

    return call


def _follow_file(file: Any, stage: DatasetStage, follower: StageFollower, thread: int) -> None:
    """Later reads from it count as reading too. A weak reference: a file is closed when it is released."""
    reference = weakref.ref(file)
    for name in OPENED:
        method = getattr(type(file), name, None)
        if method is not None:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(file, name, _follow(stage, partial(_read, reference, method), follower, thread))


def _read(reference: Callable[[], Any], method: Any, *args: Any, **kwargs: Any) -> Any:
    return method(reference(), *args, **kwargs)
