"""What `clew data` shows.

Enter at `data_terminal.py`. May import: as render.

- `data_html`: `clew data` in a notebook or a browser: one piece of HTML with its style and pictures in
  it, no scripts
- `data_json`: what `clew data` found, for machines: its JSON, and the files of the browser's view
  (docs/api.md)
- `data_terminal`: `clew data` on one screen: every loader, how fast it is, and what is wrong with the
  data
- `field_text`: fields of samples and batches in words: shape, type and range, one line each
- `loader_failure`: A loader that failed: the sample, the stage and the lines, in a few lines after the
  traceback
- `loader_screen`: one loader on the screen: what it is, its samples beside the same samples as the model
  gets them
- `loader_text`: what was measured of a loader in words: the same on the terminal and in HTML
- `speed_report`: how fast a loader is and why: what limits first, then stages, sizes, padding and
  settings
- `survey_report`: what a look through the datasets found: a table of fields, labels as bars, and the rest
  in words
"""
