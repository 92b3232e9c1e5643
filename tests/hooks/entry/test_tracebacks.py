from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

from clew.hooks.entry import launcher
from clew.hooks.entry.launcher import clean, is_ours

PACKAGE = Path(launcher.__file__).parents[2]
IMPORTLIB = "<frozen importlib._bootstrap>"


def caller(filename: str, inner: Callable[[], object]) -> Callable[[], object]:
    """A function in a file of that name that calls `inner`."""
    space: dict[str, Callable[[], object]] = {"inner": inner}
    exec(compile("def call():\n    return inner()", filename, "exec"), space)
    return space["call"]


def stack(*filenames: str) -> Callable[[], object]:
    def fail() -> object:
        raise ValueError("x")

    function: Callable[[], object] = fail
    for filename in reversed(filenames):
        function = caller(filename, function)
    return function


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - any kind is looked at
        return error
    raise AssertionError("it did not raise")


def files(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)][1:-1]


def test_frames_of_the_package_and_of_generated_code_go() -> None:
    ours = str(PACKAGE / "attach" / "hooks.py")
    error = caught(stack("train.py", ours, "torch.py", "<clew>", "<clew wrapper>", "model.py"))
    clean(error)
    assert files(error) == ["train.py", "torch.py", "model.py"]


def test_import_machinery_goes_only_beside_our_frames() -> None:
    error = caught(stack("a.py", IMPORTLIB, "b.py", IMPORTLIB, IMPORTLIB, "<clew>", IMPORTLIB, "c.py"))
    clean(error)
    assert files(error) == ["a.py", IMPORTLIB, "b.py", "c.py"]


def test_a_traceback_without_our_frames_is_left_as_it_is() -> None:
    error = caught(stack("a.py", "b.py"))
    before = error.__traceback__
    clean(error)
    assert error.__traceback__ is before


def test_causes_contexts_and_circles_are_cleaned_too() -> None:
    errors = [caught(stack("user.py", "<clew>", "user2.py")) for _ in range(3)]
    errors[0].__cause__, errors[1].__context__, errors[2].__context__ = errors[1], errors[2], errors[0]
    clean(errors[0])
    assert [files(e) for e in errors] == [["user.py", "user2.py"]] * 3


def test_members_of_a_group_are_cleaned() -> None:
    class Group(Exception):  # noqa: N818 - as ExceptionGroup, which 3.10 lacks
        exceptions: tuple[BaseException, ...] = ()

    group, member = Group(), caught(stack("user.py", "<clew>"))
    group.exceptions = (member,)
    clean(group)
    assert files(member) == ["user.py"]


def test_an_exception_raised_by_us_ends_at_the_users_line() -> None:
    def raise_inside() -> object:
        space: dict[str, Callable[[], object]] = {}
        exec(compile("def stop():\n    raise SystemError('x')", "<clew stop>", "exec"), space)
        return space["stop"]()

    error = caught(raise_inside)
    clean(error)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "raise_inside"


def test_the_demo_counts_as_the_users_code() -> None:
    assert is_ours(str(PACKAGE / "session.py"))
    assert not is_ours(str(PACKAGE / "demo" / "digits.py"))
