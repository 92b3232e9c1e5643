"""Whose line is it? What is the user's own is told from what is torch's, Clew's or a library's."""

from __future__ import annotations

import os
import sysconfig

import pytest
import torch

import clew
from clew.hooks.entry.patches import invisible
from clew.hooks.entry.user_line import HIDDEN, LIBRARY, USER, kind_of, user_line

HOME = os.path.join(os.sep, "home", "ada")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (os.path.join(HOME, "train.py"), USER),
        (os.path.join(HOME, "clew", "train.py"), USER),
        (os.path.join(HOME, "bin", "train"), USER),
        ("<stdin>", USER),
        (os.path.join(HOME, "venv", "bin", "clew"), HIDDEN),
        (os.path.join(HOME, "venv", "Scripts", "clew.exe"), HIDDEN),
        (os.path.join(os.path.dirname(clew.__file__), "session.py"), HIDDEN),
        (os.path.join(os.path.dirname(torch.__file__), "nn", "functional.py"), HIDDEN),
        (os.path.join(sysconfig.get_paths()["stdlib"], "runpy.py"), HIDDEN),
        ("<frozen importlib._bootstrap>", HIDDEN),
        (os.path.join(HOME, "venv", "lib", "site-packages", "lightning", "trainer.py"), LIBRARY),
    ],
)
def test_a_file_is_the_users_a_librarys_or_nobodys(path: str, kind: int) -> None:
    assert kind_of(path) == kind


def deeper(frames: int) -> tuple[str | None, int | None]:
    """`user_line`, asked through this many frames of Clew's."""
    ask = user_line
    for _ in range(frames):
        ask = invisible(lambda ask=ask: ask())
    return ask()


@pytest.mark.parametrize("frames", [0, 1, 5])
def test_the_line_is_the_same_through_any_number_of_our_frames(frames: int) -> None:
    code = deeper.__code__
    file, line = deeper(frames)
    assert file == code.co_filename
    assert line == code.co_firstlineno + 5
