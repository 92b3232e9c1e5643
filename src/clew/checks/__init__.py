"""From recorded signals and facts to findings: pure functions, no torch.

Enter at `runner.judge`, which asks every check of `catalog`. May import: records, store.

- `base`: what a check is: thresholds, the signals it needs, one pure method, and a docstring
- `catalog`: all checks, found in the folders of the families
- `cause_groups`: groups of faults that have the same consequences
- `causes`: which finding explains which, so that a reader sees the root cause first
- `check_pages`: documentation pages made from the checks themselves: their docstrings and thresholds
- `custom_checks`: checks of the user's own: registered in the process, or installed with a package
- `ignore_rules`: what the user has said to leave out: a check everywhere, or at some places only
- `needs`: what a check needs to have been recorded: signals and kinds of facts, or one of several
- `proof_verdicts`: what trials of fixes mean for the findings: confirmed, weakened, or withdrawn
- `run_view`: A run as the checks see it, whether it is still growing or was read from disk
- `runner`: asks every check about a run and puts the answers in an order that a person can use
- `series`: one signal at one site, with the few questions that checks ask of it
- `thresholds`: thresholds that a project sets itself, instead of a check's defaults
- `trainings`: the parts of a run that must be judged each by itself
- `wording`: how findings put lists, counts and shapes into words
- `evidence/`: typed readings of a run that several checks share
- `act/` … `sym/`: the checks; the folder is the family and the prefix of the id
"""
