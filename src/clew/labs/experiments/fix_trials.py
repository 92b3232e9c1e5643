"""The fixes of what was found, tried one after the other while there is time."""

from __future__ import annotations

from collections.abc import Sequence

from clew.hooks.entry.sink import Sink
from clew.labs.experiments.tools.fix_proof import provable, prove
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock
from clew.records.facts.run_facts import ProofFact

MOST = 4  # findings whose fixes are tried: the first ones are the root causes
SHARE = 0.5  # of the time left that one trial may use if another comes after it


def try_fixes(
    found: Sequence[str],
    subject: Subject,
    sink: Sink,
    step: int,
    limit: float,
) -> None:
    """Write a `proof` fact for every finding (in the order of the verdict) whose fix can be tried."""
    whole = Clock(limit)
    whole.start()
    tried = [name for name in found if provable(name)][:MOST]
    for number, check in enumerate(tried):
        last = number == len(tried) - 1
        clock = Clock(whole.left if last else whole.left * SHARE)
        clock.start()
        try:
            proof = prove(check, found, subject, clock)
        except CannotJudge as refusal:
            ProofFact(check, refused=refusal.reason).write(sink, step)
        except Exception as error:  # noqa: BLE001 - the user's own step may fail in any way
            told = (str(error).splitlines() or [type(error).__name__])[0]
            ProofFact(check, refused=f"the step failed: {told[:200]}").write(sink, step)
        else:
            sink.fact(ProofFact.fact_kind, step, {"check": check, **proof.to_json()})
