"""Plain data that rooms pass to each other; no torch.

Enter at `finding.py`, `site.py`, `verdict.py`. May import: nothing of Clew's.

- `codec`: JSON codec for frozen dataclasses: written on one machine and read on another
- `data_names`: names that programs give to labels and to held-out data
- `data_report`: report of `clew data`: everything it found, as plain data for rendering. No torch here
- `dataset_survey`: survey of a dataset, split by split: plain data for the checks and for rendering
- `errors`: errors that Clew's own functions raise for arguments that they cannot use
- `events`: one frozen dataclass for each kind of event: a checkpoint, a change of mode, the end of a script
  by an exception
- `extensions`: where checks, experiments and other extensions are found: built in, registered here, or in
  packages
- `finding`: finding of a check: how bad it is, where, on what evidence, and how to fix it
- `json_values`: values of JSON that may come from another version of Clew or a damaged disk: what does
  not fit is left out
- `loader_speed`: loader speed: how fast data comes, how large it is, and what is wasted, for rendering
  and checks
- `network`: structure of a network: modules, ops, shapes, memory and graph, as plain data for rendering
- `plural`: counts in words: `1 step`, `1,234 steps`
- `register_page`: all kinds of facts and events in order, and the tables of docs/signals.md that
  `scripts/docs` generates from the registers
- `sample_views`: samples and batches in a readable form: plain data for rendering. No torch here
- `signal_types`: types of the signal register: signal, family of signals, group and chart
- `signals`: the register of signals: every series that Clew records, its unit, site, meaning and place in
  the browser
- `site`: site: where in the program something was measured, by module, parameter, operation and source
  line
- `step_costs`: costs of training steps, as a profile measured them: plain data for rendering and checks
- `tried_changes`: changes tried on a snapshot to make a step faster, and the effect of other batch sizes
- `verdict`: verdict of all checks on a run: findings, and what was not judged or was ignored
- `version`: version of Clew and of its run format; a file of its own, so that every package can import it
- `facts/`: one frozen dataclass for each kind of fact: what collectors write and checks read
"""
