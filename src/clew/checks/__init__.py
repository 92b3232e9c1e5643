"""From recorded signals and facts to findings: pure functions, no torch.

Enter at `runner.judge`, which asks every check of `catalog`. May import: records.

- `base`: what a check is: thresholds, the signals it needs, one pure method, and a docstring
- `catalog`: all checks of Clew's own: every check in the folder of a family is one of them; their pages
- `causes`: groups of faults with the same consequences, and which finding explains which: the root cause
  comes first
- `custom_checks`: the user's own checks: registered in the process, or installed with a package
- `ignore_rules`: what the user has asked to ignore: a check everywhere, or only at some places
- `needs`: what a check needs to have been recorded: signals and kinds of facts of the register, or one of
  several
- `proof_verdicts`: what experiments with fixes mean for the findings: confirmed, weakened, or withdrawn
- `run_view`: a run as the checks see it, whether it is still in progress or was read from disk
- `runner`: runs every check on a run and sorts the findings so that a person can use them
- `series`: one signal at one site, with the few methods that checks need
- `thresholds`: thresholds that a project sets itself, instead of a check's defaults
- `trainings`: the parts of a run that are checked one by one
- `wording`: how checks write lists, counts, shapes, and what is still missing
- `evidence/`: what several checks read from a run: losses, loaders, layers
- `act/` … `sym/`: the checks; the folder is the family and the prefix of the id:
  act (activations)
  adv (advice)
  data (data)
  exp (experiments)
  grad (gradients)
  grph (the autograd graph)
  loop (the training loop)
  loss (losses)
  met (metrics)
  mode (train and eval modes)
  num (numerics)
  opt (optimisation)
  out (outputs)
  perf (speed and memory)
  str (structure)
  sym (symptoms)
"""
