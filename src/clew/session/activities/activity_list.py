"""Which parts a run has, by what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.session.activities.activity import Part
from clew.session.activities.graph_activity import GraphPart
from clew.session.activities.leak_watch import GrowthPart
from clew.session.activities.numerics_trace import NumericsPart
from clew.session.activities.print_shapes import ShapesPart
from clew.session.activities.user_checks import OwnChecks

if TYPE_CHECKING:
    from clew.session.session import Session


def parts_of(session: Session) -> list[Part]:
    """In the order in which they are wired and speak; they are closed in the opposite one.

    What uses memory or time when the run is over (proofs, attempts) comes before what measures it, so
    that it is closed after it.
    """
    options = session.options
    growth = GrowthPart(session)
    parts: list[Part] = []
    if options.check is not None:
        from clew.session.activities.preflight_experiments import PreflightRun

        parts.append(PreflightRun(session, options.check))
    if options.data is not None:
        from clew.session.activities.data_inspection import DataRun

        parts.append(DataRun(session, options.data))
    if options.profile is not None:
        from clew.session.activities.profile_recording import ProfileRun

        parts.append(ProfileRun(session, options.profile, growth))
    if options.prove and options.check is None:
        from clew.session.activities.fix_proofs import ProofRun

        parts.append(ProofRun(session))
    parts += [OwnChecks(session), growth]
    if options.graph and session.rank == 0:
        parts.append(GraphPart(session))
    if options.trace_numerics is not None:
        parts.append(NumericsPart(session))
    if options.print_shapes:
        parts.append(ShapesPart(session))
    return parts
