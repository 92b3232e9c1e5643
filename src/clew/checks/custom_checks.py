"""The user's own checks: registered in the process, or installed with a package.

A function that takes a run and yields findings (or just sentences) is enough:

    @clew.register(name="loss-above-ten", needs=[clew.extend.recorded_signal("loss")])
    def loss_above_ten(run):
        \"\"\"The loss is above ten at the end.\"\"\"
        for site, series in run.series("loss", phase="train"):
            if series.values[-1] > 10:
                yield f"the loss is {series.values[-1]:.3g}"

A package provides its checks under the entry point group `clew.checks`. Their findings are recorded with
the run (fact `custom_check`), so that a reader who does not have the checks sees them too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from clew.checks.base import Check
from clew.checks.needs import Need
from clew.checks.run_view import RunView
from clew.records.extensions import NAME, CannotRegister, Extensions, must_be_named, name_of
from clew.records.finding import Finding, Severity
from clew.records.verdict import NotJudged

Diagnose = Callable[[RunView], Any]


@overload
def register(check: type[Check] | Check | Diagnose) -> Any: ...
@overload
def register(
    *, name: str | None = None, needs: Sequence[Need] = (), severity: str = "warning"
) -> Callable[[Any], Any]: ...
def register(
    check: Any = None, *, name: str | None = None, needs: Sequence[Need] = (), severity: str = "warning"
) -> Any:
    """Add your own check, as a decorator or a call; a class, an instance or a function.

    A function's name becomes the check's (`loss_above_ten` is `loss-above-ten`), its docstring
    the documentation. Registering a name again replaces the check.
    """
    if check is None:
        return lambda given: register_as(given, name, needs, severity)
    return register_as(check, name, needs, severity)


def register_as(given: Any, name: str | None, needs: Sequence[Need], severity: str) -> Any:
    """Register the object and return it, so that it stays usable where it is defined."""
    check = as_check(given, name, needs, severity)
    from clew.checks.catalog import CHECKS

    if check.name in {kind.name for kind in CHECKS} or check.id in {kind.id for kind in CHECKS}:
        raise CannotRegister(f"{check.name} ({check.id}) is one of Clew's own checks; choose another name")
    CHECKS_OF_OTHERS.add(check.name, check)
    return given


def as_check(
    given: Any, name: str | None = None, needs: Sequence[Need] = (), severity: str = "warning"
) -> Check:
    """A check object out of a class, an instance or a function."""
    if isinstance(given, type) and issubclass(given, Check):
        given = given()
    if isinstance(given, Check):
        must_be_named("a check", given.name)
        return given
    if not callable(given):
        raise CannotRegister(f"a check is a class, an instance or a function, not {type(given).__name__}")
    wanted = name or name_of(given)
    must_be_named("a check", wanted)
    return _from_function(given, wanted, tuple(needs), Severity(severity))


@dataclass(frozen=True)
class FunctionCheck(Check):
    """A check made of a function."""

    page: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.WARNING
    function: ClassVar[Any] = None

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for found in type(self).function(run) or ():
            yield found if isinstance(found, Finding) else self._from_sentence(found)

    def _from_sentence(self, found: Any) -> Finding:
        """A finding for a sentence, or for a sentence with a fix."""
        message, fix = found if isinstance(found, tuple) else (found, "")
        return self.finding(
            self.severity, message=str(message), fix=str(fix) or f"see clew explain {self.name}"
        )


def _from_function(function: Diagnose, name: str, needs: tuple[Need, ...], severity: Severity) -> Check:
    members = {
        "id": f"USER-{name}",
        "name": name,
        "needs": needs,
        "severity": severity,
        "page": _page(function),
        "function": staticmethod(function),
        "__module__": getattr(function, "__module__", __name__),
        "__doc__": function.__doc__,
    }
    made: Check = type(name, (FunctionCheck,), members)()
    return made


def _page(function: Diagnose) -> str:
    text = inspect.getdoc(function) or f"Your own check {getattr(function, '__name__', 'made here')}."
    return text if "## " in text else f"## What it detects\n{text}"


CHECKS_OF_OTHERS: Extensions[Check] = Extensions(
    "clew.checks", lambda given, name: as_check(given, name if NAME.fullmatch(name) else None)
)


def own_checks() -> list[Check]:
    """All checks that are not Clew's: registered ones, then those of installed packages."""
    registered = CHECKS_OF_OTHERS.registered
    installed = CHECKS_OF_OTHERS.installed().values()
    return [*registered.values(), *(check for check in installed if check.name not in registered)]


def broken() -> list[NotJudged]:
    """Entry points that could not be loaded."""
    return [NotJudged(name, reason) for name, reason in CHECKS_OF_OTHERS.broken().items()]


# ---- what is recorded of them --------------------------------------------------------------


def findings_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as the facts `custom_check` and `announced` record them."""
    return [{**f.to_json(), "site": f.site.to_json()} for f in findings]


def recorded_findings(recorded: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Findings that such a fact has recorded."""
    return [Finding.from_json(entry) for entry in recorded]
