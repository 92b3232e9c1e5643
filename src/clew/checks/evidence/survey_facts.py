"""What `clew data` found in the datasets, as the checks read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.dataset_survey import Between, DatasetSurvey, Duplicates
from clew.records.finding import Evidence, Exhibit
from clew.records.site import Site

NATURAL = 100  # times the copies that chance would make, up to which they are nothing to speak of


def surveys(run: RunView) -> list[DatasetSurvey]:
    """The newest survey of every split."""
    found = [DatasetSurvey.from_json(f.data) for f in run.facts("data.survey")]
    return list({(s.split, s.loader): s for s in found}.values())


def training(run: RunView) -> list[DatasetSurvey]:
    """Of splits that are trained on; those whose use is not known, if there are no others."""
    found = surveys(run)
    return [s for s in found if s.role == "train"] or [s for s in found if s.role != "eval"]


def evaluation(run: RunView) -> list[DatasetSurvey]:
    return [s for s in surveys(run) if s.role == "eval"]


def between(run: RunView) -> list[Between]:
    found = [Between.from_json(f.data) for f in run.facts("data.between")]
    return list({(b.first, b.second): b for b in found}.values())


def was_surveyed(run: RunView) -> bool:
    return bool(run.facts("data.survey"))


def site(found: DatasetSurvey | Between) -> Site:
    """The line that makes or iterates the loader."""
    return Site(op="loader", file=found.file, line=found.line)


def looked(survey: DatasetSurvey) -> Evidence:
    """How much the words rest on."""
    many = f"{'all' if survey.whole else 'the first'} {survey.looked:,}"
    if not survey.whole and survey.total:
        many = f"{survey.looked:,} of {survey.total:,}"
    ended = f", until {survey.stopped} was reached" if survey.stopped == "the time limit" else ""
    return Evidence(f"{many} samples of {survey.dataset or survey.split} were read{ended}")


def exhibits(found: DatasetSurvey | Between, *about: str) -> list[Exhibit]:
    return [Exhibit.from_json(dict(e)) for e in found.exhibits if e.get("about") in about]


def at(indices: Iterable[int], most: int = 6) -> str:
    """`3, 17, 40 and 9 more`"""
    return listed([str(n) for n in indices], most)


def by_nature(copies: Duplicates) -> bool:
    """Data of so few different values that samples must repeat."""
    return copies.natural * NATURAL >= max(copies.copies, 1)


def called(found: DatasetSurvey, all_of_them: Sequence[DatasetSurvey]) -> str:
    """The split's name, where there are several."""
    return f" of {found.split}" if len(all_of_them) > 1 else ""
