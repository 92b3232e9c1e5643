"""Which parts a run has, by what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.parts.graph import GraphPart
from clew.parts.growth import GrowthPart
from clew.parts.numerics import NumericsPart
from clew.parts.own_checks import OwnChecks
from clew.parts.part import Part
from clew.parts.shapes import ShapesPart

if TYPE_CHECKING:
    from clew.session import Session


def parts_of(session: Session) -> list[Part]:
    """In the order in which they are wired and speak; they are closed in the opposite one.

    What uses memory or time when the run is over (proofs, attempts) comes before what measures it, so
    that it is closed after it.
    """
    options = session.options
    growth = GrowthPart(session)
    parts: list[Part] = []
    if options.check is not None:
        from clew.parts.preflight import PreflightRun

        parts.append(PreflightRun(session, options.check))
    if options.data is not None:
        from clew.parts.data import DataRun

        parts.append(DataRun(session, options.data))
    if options.profile is not None:
        from clew.parts.profile import ProfileRun

        parts.append(ProfileRun(session, options.profile, growth))
    if options.prove and options.check is None:
        from clew.parts.proofs import ProofRun

        parts.append(ProofRun(session))
    parts += [OwnChecks(session), growth]
    if options.graph and session.rank == 0:
        parts.append(GraphPart(session))
    if options.trace_numerics is not None:
        parts.append(NumericsPart(session))
    if options.print_shapes:
        parts.append(ShapesPart(session))
    return parts
