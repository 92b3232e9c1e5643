"""A verdict: what is wrong, where, on what evidence, and the fix.

Enter at `verdict_terminal.py`. May import: records, store, checks, render.

- `check_text`: the documentation of checks in the terminal
- `finding_block`: findings in the terminal: grouped by root cause, each with place, evidence, fix and
  consequences
- `notebook`: a run in a notebook: the verdict and the loss, as HTML without scripts
- `preflight_html`: a pre-flight in a notebook or browser: one piece of HTML with style, plots and images
  inlined
- `preflight_results`: the results of a pre-flight: each experiment passed, failed or could not be judged;
  as JSON and JUnit XML
- `preflight_terminal`: a pre-flight on one screen: one line per experiment, then the failures with their
  evidence
- `replay_text`: the result of replaying a saved step, on one screen
- `runs_table`: the list of runs as a table
- `sample_gallery`: samples of the user's data in the terminal: images, text, and waveforms as lines
- `verdict_terminal`: a verdict on one screen: the root cause first, its consequences below
"""
