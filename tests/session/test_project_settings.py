from __future__ import annotations

from pathlib import Path

import pytest

from clew.checks.ignore_rules import Rule
from clew.session.project_settings import BadSettings, project_rules


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_rules_are_names_or_tables(tmp_path: Path) -> None:
    write(
        tmp_path,
        '[tool.clew]\nignore = ["class-imbalance", {check = "dead-units", where = "g.*", why = "w"}]',
    )
    assert project_rules(tmp_path) == [Rule("class-imbalance"), Rule("dead-units", "g.*", "w")]


def test_the_nearest_file_that_mentions_clew_counts(tmp_path: Path) -> None:
    write(tmp_path, '[tool.clew]\nignore = ["dead-units"]')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(inner, "[tool.other]\n")
    assert project_rules(inner) == [Rule("dead-units")]


def test_no_file_means_no_rules(tmp_path: Path) -> None:
    assert project_rules(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.clew]\nignore = [", "pyproject.toml: "),
        ('[tool.clew]\nignore = "dead-units"', "must be a list"),
        ("[tool.clew]\nignore = [3]", "not 3"),
        ("[tool.clew]\nignroe = []", "no setting 'ignroe'"),
    ],
)
def test_what_can_not_be_used_is_said_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=said) as told:
        project_rules(write(tmp_path, text))
    assert "\n" not in str(told.value)
