from __future__ import annotations

import re
from pathlib import Path

import pytest

from clew.checks.ignore_rules import Rule
from clew.checks.thresholds import ThresholdSetting
from clew.session.project_settings import BadSettings, project_settings, threshold_problems


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def rules_of(folder: Path) -> list[Rule]:
    return list(project_settings(folder).rules)


def test_rules_are_names_or_tables(tmp_path: Path) -> None:
    write(
        tmp_path,
        '[tool.clew]\nignore = ["class-imbalance", {check = "dead-units", where = "g.*", why = "w"}]',
    )
    assert rules_of(tmp_path) == [Rule("class-imbalance"), Rule("dead-units", "g.*", "w")]


def test_the_nearest_file_that_mentions_clew_counts(tmp_path: Path) -> None:
    write(tmp_path, '[tool.clew]\nignore = ["dead-units"]')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(inner, "[tool.other]\n")
    assert rules_of(inner) == [Rule("dead-units")]


def test_no_file_means_no_rules(tmp_path: Path) -> None:
    assert rules_of(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.clew]\nignore = [", "pyproject.toml: "),
        ('[tool.clew]\nignore = "dead-units"', "must be a list"),
        ("[tool.clew]\nignore = [3]", "not 3"),
        ("[tool.clew]\nignroe = []", "unknown setting 'ignroe'; available: ignore, thresholds"),
        ("[tool.clew]\nthresholds = 3", "tool.clew.thresholds must be a table"),
        ("[tool.clew.thresholds]\ndead-units = 0.7", "dead-units must be a table of thresholds, not 0.7"),
    ],
)
def test_what_can_not_be_used_is_reported_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=said) as told:
        project_settings(write(tmp_path, text))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        "[tool.clew.thresholds]\ndead-units.dead_fraction = 0.7",
        "[tool.clew.thresholds.dead-units]\ndead_fraction = 0.7",
        "[tool.clew]\nthresholds = {dead-units = {dead_fraction = 0.7}}",
    ],
)
def test_thresholds_are_tables_by_check(text: str, tmp_path: Path) -> None:
    (setting,) = project_settings(write(tmp_path, text)).thresholds
    assert setting == ThresholdSetting("dead-units", {"dead_fraction": 0.7})
    assert threshold_problems([setting]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dead-unit.window = 3", "there is no check named 'dead-unit'; did you mean dead-units?"),
        (
            "dead-units.dead = 3",
            "dead-units: unknown threshold 'dead'; available: dead_fraction, window, sustained, batch",
        ),
        (
            "slow-loader.dead = 3",
            "slow-loader: unknown threshold 'dead'; available: waiting, slow, short, gain",
        ),
        ("ACT001.window = 0.5", "dead-units.window must be a whole number, not 0.5"),
        ("dead-units.window = true", "dead-units.window must be a whole number, not True"),
        ("dead-units.dead_fraction = 'much'", "dead-units.dead_fraction must be a number, not 'much'"),
        ("dead-units.dead_fraction = nan", "dead-units.dead_fraction must be a number, not nan"),
        ("dead-units.dead_fraction.a = 1", "dead-units.dead_fraction must be a number, not {'a': 1}"),
        ("dead-units.window = 2026-01-01", "must be a whole number, not datetime.date(2026, 1, 1)"),
    ],
)
def test_a_threshold_that_can_not_be_used_is_reported_in_one_line(
    text: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path, f"[tool.clew.thresholds]\n{text}\ndead-units.batch = 4")
    thresholds = project_settings(tmp_path).thresholds
    (line,) = threshold_problems(thresholds)
    assert line.startswith("tool.clew.thresholds")
    assert line.endswith(said)
    assert "\n" not in line


def test_a_check_that_may_still_come_is_no_problem_yet(tmp_path: Path) -> None:
    write(tmp_path, "[tool.clew.thresholds]\nmy-own.most = 3")
    thresholds = project_settings(tmp_path).thresholds
    assert threshold_problems(thresholds, unknown=False) == []
    assert len(threshold_problems(thresholds)) == 1


def test_the_settings_in_the_documentation_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "your-own.md").read_text(encoding="utf-8")
    (block,) = (b for b in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "thresholds" in b)
    thresholds = project_settings(write(tmp_path, block)).thresholds
    assert [setting.check for setting in thresholds] == ["dead-units", "class-imbalance", "loss-stuck"]
    assert threshold_problems(thresholds) == []
