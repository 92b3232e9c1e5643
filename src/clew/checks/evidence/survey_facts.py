"""What `clew data` found in the datasets, as the checks read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clew.checks.run_view import RunView
from clew.checks.wording import listed
from clew.records.dataset_survey import Between, DatasetSurvey, Duplicates
from clew.records.facts.document_facts import BetweenFact, SurveyFact
from clew.records.finding import Evidence, Exhibit
from clew.records.site import Site


def surveys(run: RunView) -> list[DatasetSurvey]:
    """The newest survey of every split."""
    found = [fact.content for fact in run.known(SurveyFact) if fact.content is not None]
    return list({(s.split, s.loader): s for s in found}.values())


def training(run: RunView) -> list[DatasetSurvey]:
    """Of splits that are trained on; those whose use is not known, if there are no others."""
    found = surveys(run)
    return [s for s in found if s.role == "train"] or [s for s in found if s.role != "eval"]


def evaluation(run: RunView) -> list[DatasetSurvey]:
    return [s for s in surveys(run) if s.role == "eval"]


def between(run: RunView) -> list[Between]:
    """The newest comparison of every two splits."""
    found = [fact.content for fact in run.known(BetweenFact) if fact.content is not None]
    return list({(b.first, b.second): b for b in found}.values())


def was_surveyed(run: RunView) -> bool:
    return run.has(SurveyFact)


def place_of(found: DatasetSurvey | Between) -> Site:
    """The line that creates the loader, or that iterates over it."""
    return Site(op="loader", file=found.file, line=found.line)


def samples_read(survey: DatasetSurvey) -> Evidence:
    """How many samples a finding is based on."""
    many = f"{'all' if survey.whole else 'the first'} {survey.samples_read:,}"
    if not survey.whole and survey.total:
        many = f"{survey.samples_read:,} of {survey.total:,}"
    ended = f", until {survey.stopped} was reached" if survey.stopped == "the time limit" else ""
    return Evidence(f"{many} samples of {survey.dataset or survey.split} were read{ended}")


def exhibits(found: DatasetSurvey | Between, *about: str) -> list[Exhibit]:
    return [e.exhibit for e in found.exhibits if e.about in about]


def by_index(indices: Iterable[int], most: int = 6) -> str:
    """`3, 17, 40 and 9 more`"""
    return listed([str(n) for n in indices], most)


def by_nature(copies: Duplicates, factor: float) -> bool:
    """Whether the data has so few different values that samples must repeat.

    So it is if there are at most `factor` times as many copies as chance would make.
    """
    return copies.natural * factor >= max(copies.copies, 1)


def called(found: DatasetSurvey, all_of_them: Sequence[DatasetSurvey]) -> str:
    """The split's name, where there are several."""
    return f" of {found.split}" if len(all_of_them) > 1 else ""
