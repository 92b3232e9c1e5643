"""Checks of advice, ids ADV001 and up: one file each, and nothing else.

The catalogue finds them here. May import: records, checks.base, checks.evidence, checks.needs,
checks.opt, checks.run_view, checks.series, checks.str, checks.thresholds, checks.trainings,
checks.wording.
"""
