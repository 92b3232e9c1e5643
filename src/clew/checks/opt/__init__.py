"""Checks of optimisation, ids OPT001 and up: one file each, and nothing else.

The catalogue finds them here. May import: records, checks.base, checks.evidence, checks.needs,
checks.run_view, checks.series, checks.trainings, checks.wording.
"""
