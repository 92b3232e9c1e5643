"""The activities of a run, chosen by its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.session.activities.activity import Activity
from clew.session.activities.framework_adapters import FrameworkAdapters
from clew.session.activities.graph_recording import GraphRecording
from clew.session.activities.growth_recording import GrowthRecording
from clew.session.activities.nan_replay import NanReplay
from clew.session.activities.numerics_trace import NumericsTracing
from clew.session.activities.print_shapes import PrintShapes
from clew.session.activities.source_copies import SourceCopies
from clew.session.activities.tracker_feed import TrackerFeed
from clew.session.activities.user_checks import UserChecks
from clew.session.activities.user_signals import UserSignals

if TYPE_CHECKING:
    from clew.session.session import Session


def activities_of(session: Session) -> list[Activity]:
    """All activities, in the order in which they are wired and report; they are closed in reverse order.

    Activities that use memory or time at the end of the run (proofs, faster steps) come before those that
    measure it, so that they are closed after them.
    """
    options = session.options
    growth = GrowthRecording(session)
    activities: list[Activity] = [SourceCopies(session), NanReplay(session)]
    if options.check is not None:
        from clew.session.activities.preflight_experiments import PreflightExperiments

        activities.append(PreflightExperiments(session, options.check))
    if options.data is not None:
        from clew.session.activities.data_inspection import DataInspection

        activities.append(DataInspection(session, options.data))
    if options.profile is not None:
        from clew.session.activities.profile_recording import ProfileRecording

        activities.append(ProfileRecording(session, options.profile, growth))
    if options.prove and options.check is None:
        from clew.session.activities.fix_proofs import FixProofs

        activities.append(FixProofs(session))
    activities += [UserChecks(session), growth]
    if options.graph and session.rank == 0:
        activities.append(GraphRecording(session))
    if options.trace_numerics is not None:
        activities.append(NumericsTracing(session))
    activities += [UserSignals(session), FrameworkAdapters(session), TrackerFeed(session)]
    if options.print_shapes:
        activities.append(PrintShapes(session))
    return activities
