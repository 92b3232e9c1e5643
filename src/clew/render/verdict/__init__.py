"""A verdict: what is wrong, where, on what evidence, and the fix.

Enter at `verdict_terminal.py`. May import: as render.

- `check_text`: the documentation of checks in the terminal
- `finding_block`: one finding, drawn: what, where, the evidence, how to fix it, and what follows from it
- `notebook`: A run in a notebook: the verdict and the loss, as HTML without scripts
- `preflight_answers`: the results of a pre-flight, sorted: each experiment passed, failed or could not be
  judged
- `preflight_html`: A pre-flight in a notebook or browser: one piece of HTML with style, plots and images
  inlined
- `preflight_json`: A pre-flight for machines: JSON, and JUnit XML for CI systems
- `preflight_terminal`: A pre-flight on one screen: one line per experiment, then the failures with their
  evidence
- `replay_text`: the result of replaying a saved step, on one screen
- `root_causes`: groups findings that share a cause under that cause
- `runs_table`: the list of runs as a table
- `sample_gallery`: samples of the user's data in the terminal: images, text, and waveforms as lines
- `source_place`: where a finding points: the user's file and line, and the source on it
- `verdict_terminal`: A verdict on one screen: the root cause first, its consequences below
"""
