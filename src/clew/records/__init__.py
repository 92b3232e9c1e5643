"""Plain data that crosses rooms: no torch, no formatting.

Enter at `finding.py`, `site.py`, `verdict.py`. May import: nothing of Clew's.

- `codec`: frozen dataclasses to JSON and back, for what is written on one machine and read on another
- `data_report`: everything that `clew data` found, as plain data for `show`. No torch here
- `dataset_survey`: what a look through a dataset found, split by split: plain data for the checks and the
  screen
- `errors`: what Clew's own functions raise when they are given something that they can't use
- `extensions`: A place to extend: what was registered in this process, and what installed packages offer
- `finding`: what a check found: how bad it is, where, on what evidence, and how to fix it
- `loader_speed`: how fast data comes, what it weighs and what is wasted: plain data from `pipeline` to
  `show` and `checks`
- `network`: what is known of a network's structure: plain data that crosses from `model` to `show`
- `register_page`: the tables of docs/signals.md, made from the register: `scripts/docs` puts them between
  their marks
- `sample_views`: samples and batches as a person can look at them: plain data from `pipeline` to `show`.
  No torch here
- `signal_types`: what the register of signals is made of: a signal, a family of them, its group and its
  chart
- `signals`: the register of signals: every series that Clew records, its unit, site, meaning and place in
  the browser
- `site`: where in the program something was seen: module, parameter, operation, and the line of source
- `step_costs`: what steps cost, as a profile found it: plain data that crosses from `profiling` to `show`
  and `checks`
- `tried_changes`: what was tried on a snapshot to make a step faster, and what batches of other sizes
  would give
- `verdict`: what all checks together say of a run: findings, and what was not judged or was ignored
- `version`: what this Clew is called; on its own, so that every room may know it
- `facts/`: one frozen dataclass for each kind of fact: what collectors write and checks read
"""
