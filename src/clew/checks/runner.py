"""Runs every check on a run and sorts the findings so that a person can use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from clew.checks import catalog
from clew.checks.base import Check
from clew.checks.causes import Causes, folded, possible_causes
from clew.checks.custom_checks import broken, recorded_findings
from clew.checks.ignore_rules import Rule, rules_of
from clew.checks.needs import Need, One, fact_kind, fact_kinds, of_experiment, options, text_of
from clew.checks.proof_verdicts import proven
from clew.checks.run_view import RunView
from clew.checks.thresholds import in_force
from clew.checks.trainings import PHASE, RunPart, run_parts
from clew.checks.wording import listed
from clew.records.facts.experiment_facts import PREFIX
from clew.records.facts.run_facts import AnnouncedFact, CustomCheckFact, IgnoreFact
from clew.records.finding import Evidence, Finding
from clew.records.site import Site
from clew.records.verdict import NEEDS_DATA, NEEDS_EXPERIMENT, NEEDS_PROFILE, Ignored, NotJudged, Verdict

# Prefixes of the kinds of facts that a plain run never has, and the command that records them.
OTHER_COMMANDS = {PREFIX: NEEDS_EXPERIMENT, "profile": NEEDS_PROFILE, "data.": NEEDS_DATA}
MOST_OTHERS = 8  # further places that are listed one by one; more would not fit on one screen


def judge(
    run: RunView, *, checks: Iterable[Check] | None = None, ignore: Iterable[str | Rule] = ()
) -> Verdict:
    """The verdict of all checks on the run as it is now.

    `ignore` adds to what the run itself ignores. Thresholds are those that the run was recorded with.
    Nothing raises: a check that fails is listed as not judged.
    """
    known = catalog.everything()
    asked = in_force(known if checks is None else checks, run)
    rules = [*rules_of(ignore), *(Rule.of_fact(fact) for fact in run.known(IgnoreFact))]
    answers = _Answers(run, rules)
    for check in asked:
        if not any(rule.covers(check.name, check.id) for rule in rules):
            answers.add(check.name, *ask(check, run))
    if checks is None:
        _add_recorded(answers, {check.name for check in asked})
        answers.not_judged += broken()
    _add_announced(answers, asked)
    kept, withdrawn = proven(answers.findings, run)
    answers.ruled_out += withdrawn
    causes = Causes({check.name: check for check in (*known, *asked)}.values())
    ordered = folded(kept, causes)
    roots = [f for f in ordered if not f.because]  # all other findings follow from these
    cleared = {c.name for c in asked if c.name in answers.ruled_out and _clears(c, run)}
    return Verdict(
        tuple(ordered),
        tuple(answers.not_judged),
        tuple(answers.ruled_out),
        tuple(answers.ignored),
        tuple(name for name in possible_causes(roots, causes) if name in cleared),
    )


class _Answers:
    """The answers of the checks so far: findings, not judged, ruled out or ignored."""

    def __init__(self, run: RunView, rules: Sequence[Rule]) -> None:
        self.run = run
        self._rules = rules
        self.findings: list[Finding] = []
        self.not_judged: list[NotJudged] = []
        self.ruled_out: list[str] = []
        self.ignored: list[Ignored] = []

    def add(self, name: str, found: Sequence[Finding], reason: str | None) -> None:
        kept, dropped = [], []
        for finding in (_located(self.run, f) for f in found):
            rule = next((r for r in self._rules if r.covers_finding(finding)), None)
            if rule is None:
                kept.append(finding)
            else:
                dropped.append(rule)
        if kept:
            self.findings.append(merged_finding(kept))
        elif dropped:
            self.ignored.append(Ignored(name, dropped[0].why))
        elif reason:
            self.not_judged.append(NotJudged(name, reason))
        else:
            self.ruled_out.append(name)

    def has_answer_for(self, finding: Finding) -> bool:
        """Whether the check of this finding has a finding now, or is ignored."""
        known = {f.check for f in self.findings} | {i.check for i in self.ignored}
        left_out = (r.covers(finding.check, finding.id) or r.covers_finding(finding) for r in self._rules)
        return finding.check in known or any(left_out)

    def take_back_or_keep(self, finding: Finding, step: int, reason: str) -> None:
        """Add an error that was reported at a step and is no longer found, or why it was withdrawn."""
        self.ruled_out = [name for name in self.ruled_out if name != finding.check]
        self.not_judged = [item for item in self.not_judged if item.check != finding.check]
        if reason:
            self.not_judged.append(
                NotJudged(finding.check, f"reported at step {step}, then withdrawn: {reason}")
            )
            return
        text = f"reported at step {step}, but no longer found over all {self.run.steps:,} steps"
        self.findings.append(replace(finding, evidence=(*finding.evidence, Evidence(text))))


def _add_recorded(answers: _Answers, known: set[str]) -> None:
    """Add the recorded results of custom checks that this process does not have."""
    for fact in answers.run.known(CustomCheckFact):
        if fact.check not in known:
            known.add(fact.check)
            answers.add(fact.check, recorded_findings(fact.findings), fact.reason)


def _add_announced(answers: _Answers, asked: Sequence[Check]) -> None:
    """Add errors that were reported during the run and that its checks no longer find.

    A user who has read such an error must find it in the verdict, or the reason why it was withdrawn.
    """
    by_name = {check.name: check for check in asked}
    for fact in answers.run.known(AnnouncedFact):
        for finding in recorded_findings(fact.findings):
            check = by_name.get(finding.check)
            if check is not None and not answers.has_answer_for(finding):
                answers.take_back_or_keep(finding, fact.step, check.withdrawal)


def ask(check: Check, run: RunView) -> tuple[list[Finding], str | None]:
    """A check's findings, or why it could not run."""
    missing = [need for need in check.needs if not run.has(need)]
    elsewhere = _other_command([option for need in missing for option in options(need)])
    if elsewhere:
        return [], elsewhere
    if missing:
        return [], f"not recorded: {listed([_readable(need) for need in missing])}"
    try:
        with np.errstate(all="ignore"):
            parts = run_parts(run, check.scope)
            if parts and run.experiment(check.name) is None:  # an experiment concerns the whole program
                return _by_part(check, run, parts)
            return _of_whole(check, run)
    except Exception as error:  # noqa: BLE001 - a faulty check must not take the others down
        return [], f"the check failed: {type(error).__name__}: {error}"


def _by_part(
    check: Check, run: RunView, parts: Sequence[tuple[RunPart, RunView]]
) -> tuple[list[Finding], str | None]:
    """The findings on all parts of a run, one for each place, with the parts that it applies to."""
    places: dict[Site, list[tuple[RunPart, Finding]]] = {}
    for part, view in parts:
        for finding in check.diagnose(view):
            places.setdefault(finding.site, []).append((part, finding))
    if places:
        return [_of_all(found, len(parts)) for found in places.values()], None
    silence = [_silence(check, view) for _, view in sorted(parts, key=lambda pair: -len(pair[0]))]
    if check.scope == PHASE and None not in silence:
        return _of_whole(check, run)  # each part is too short, but together they may show it
    return [], None if None in silence else silence[0]


def _of_whole(check: Check, run: RunView) -> tuple[list[Finding], str | None]:
    found = list(check.diagnose(run))
    return found, None if found else _silence(check, run)


def _of_all(found: Sequence[tuple[RunPart, Finding]], parts: int) -> Finding:
    worst = min((finding for _, finding in found), key=lambda f: f.severity.rank)
    if len(found) == parts and all(finding == worst for _, finding in found):
        return worst  # it is about something that all parts share
    affected = list(dict.fromkeys(part for part, _ in found))
    if len(affected) == parts:
        return replace(
            worst, evidence=(*worst.evidence, Evidence(f"the same in all {parts} trainings of this run"))
        )
    steps = listed([f"{part.first} to {part.end - 1}" for part in affected], 4)
    text = f"in {len(affected)} of the {parts} trainings of this run: steps {steps}"
    return replace(worst, evidence=(*worst.evidence, Evidence(text)))


def _clears(check: Check, run: RunView) -> bool:
    try:
        with np.errstate(all="ignore"):
            return check.clears(run)
    except Exception:  # noqa: BLE001 - as in `ask`
        return False


def _other_command(wanted: Sequence[One]) -> str | None:
    """The command that records what this check needs, where a plain run does not."""
    kinds = [fact_kind(option) or "" for option in wanted]
    commands = [next((c for begin, c in OTHER_COMMANDS.items() if k.startswith(begin)), None) for k in kinds]
    return commands[0] if commands and None not in commands else None


def _silence(check: Check, run: RunView) -> str | None:
    """Why a check could not judge a run: its experiment's reason, if only that counts, or its own."""
    own = f"{PREFIX}{check.name}"
    ways = [options(need) for need in check.needs if own in fact_kinds([need])]
    alone = any(not any(run.has(one) for one in way if fact_kind(one) != own) for way in ways)
    return (run.unanswered(check.name) if alone else None) or check.unjudged(run)


def _readable(need: Need) -> str:
    asked = options(need)
    recorded = [one for one in asked if not (fact_kind(one) or "").startswith("data.")]  # by a plain run
    names = [
        "an experiment (clew check)" if of_experiment(one) else text_of(one) for one in recorded or asked
    ]
    return " or ".join(names).replace("fact:", "fact ")


def _located(run: RunView, finding: Finding) -> Finding:
    """The finding with names and source lines that a user knows, and the samples of its experiment."""
    evidence = tuple(replace(e, site=run.locate(e.site)) if e.site else e for e in finding.evidence)
    shown = finding.exhibits or run.exhibits(finding.check)
    return replace(finding, site=run.locate(finding.site), evidence=evidence, exhibits=shown)


def merged_finding(findings: Sequence[Finding]) -> Finding:
    """One finding for all places of the same fault: the worst one, with the others as evidence."""
    order = sorted(range(len(findings)), key=lambda n: (findings[n].severity.rank, n))
    lead, others = findings[order[0]], [findings[n] for n in order[1:]]
    if not others:
        return lead
    places = listed([_place(f.site) for f in others], 3)
    steps = [f.step for f in findings if f.step is not None]
    return replace(
        lead,
        message=f"{lead.message} (same in {places})",
        step=min(steps, default=None),
        evidence=(*lead.evidence, *_also(others)),
    )


def _also(others: Sequence[Finding]) -> list[Evidence]:
    listed_one_by_one = [
        replace(f.evidence[0], text=f"also: {f.message}", site=f.site)
        if f.evidence
        else Evidence(f"also: {f.message}", site=f.site)
        for f in others[:MOST_OTHERS]
    ]
    rest = others[MOST_OTHERS:]
    if rest:
        listed_one_by_one.append(Evidence(f"and in {listed([_place(f.site) for f in rest], 40)}"))
    return listed_one_by_one


def _place(site: Site) -> str:
    if site.module is not None:
        return f"{site.module}.{site.param}" if site.param else site.module
    return f"{site.file}:{site.line}" if site.file else site.op or "elsewhere"


def judged(view: RunView) -> Verdict:
    """The verdict of the checks that read what `clew data` found."""
    asked = set(view.fact_kinds("data."))
    checks = [check for check in catalog.everything() if asked & fact_kinds(check.needs)]
    return judge(view, checks=checks)
