"""A program recorded in this process, and what was written of it."""

from __future__ import annotations

import gc

import clew
from clew.store.read.run_reader import open_run


def recorded(program, tmp_path, *things, **options):
    gc.collect()  # an optimizer of another test, which never steps here, would be waited for
    with clew.attach(*things, run_root=tmp_path, quiet=True, **options) as session:
        program()
    return open_run(session.path).data


def values(data, name, **wanted):
    found = [
        (site, list(v))
        for site, _, v in data.series(name)
        if all(getattr(site, k) == w for k, w in wanted.items())
    ]
    return found[0][1] if len(found) == 1 else found


def facts(data, kind):
    return [fact.data for fact in data.facts if fact.kind == kind]
