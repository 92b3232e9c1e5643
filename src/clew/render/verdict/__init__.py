"""A verdict: what is wrong, where, on what evidence, and the fix.

Enter at `verdict_terminal.py`. May import: as render.

- `check_text`: the documentation of checks in the terminal
- `finding_block`: one finding, drawn: what, where, on what evidence, how to fix it, and what follows from
  it
- `notebook`: A run as a notebook shows it: the verdict and the loss, in HTML without scripts
- `preflight_answers`: the answers of a pre-flight, sorted: each experiment passed, failed or could not be
  judged
- `preflight_html`: A pre-flight in a notebook or a browser: one piece of HTML with its style, plots and
  pictures in it
- `preflight_json`: A pre-flight for machines: JSON, and the XML that CI systems read test results from
- `preflight_terminal`: A pre-flight on one screen: a line for each question, then what failed, with all
  there is to see
- `replay_text`: A saved step that was run again, on one screen
- `root_causes`: findings that share a cause, gathered under it
- `runs_table`: the list of runs
- `sample_gallery`: samples of the user's data in the terminal: pictures as pictures, text as text, waves
  as lines
- `source_place`: where a finding points: the user's file and line, and what stands there
- `verdict_terminal`: A verdict on one screen: the root cause first, what follows from it beneath
"""
