"""Which activities a run has, by what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.parts.graph import GraphActivity
from clew.parts.growth import GrowthActivity
from clew.parts.nan_replay import NanReplay
from clew.parts.numerics import NumericsActivity
from clew.parts.own_checks import OwnChecks
from clew.parts.part import Activity
from clew.parts.shapes import ShapesActivity
from clew.parts.source_copies import SourceCopies

if TYPE_CHECKING:
    from clew.session import Session


def activities_of(session: Session) -> list[Activity]:
    """In the order in which they are wired and speak; they are closed in the opposite one.

    What uses memory or time when the run is over (proofs, attempts) comes before what measures it, so
    that it is closed after it.
    """
    options = session.options
    growth = GrowthActivity(session)
    activities: list[Activity] = [SourceCopies(session), NanReplay(session)]
    if options.check is not None:
        from clew.parts.preflight import PreflightRun

        activities.append(PreflightRun(session, options.check))
    if options.data is not None:
        from clew.parts.data import DataRun

        activities.append(DataRun(session, options.data))
    if options.profile is not None:
        from clew.parts.profile import ProfileRun

        activities.append(ProfileRun(session, options.profile, growth))
    if options.prove and options.check is None:
        from clew.parts.proofs import ProofRun

        activities.append(ProofRun(session))
    activities += [OwnChecks(session), growth]
    if options.graph and session.rank == 0:
        activities.append(GraphActivity(session))
    if options.trace_numerics is not None:
        activities.append(NumericsActivity(session))
    if options.print_shapes:
        activities.append(ShapesActivity(session))
    return activities
