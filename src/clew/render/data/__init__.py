"""What `clew data` shows.

Enter at `data_terminal.py`. May import: records, render, render.verdict.

- `data_html`: `clew data` in a notebook or browser: one piece of HTML with style and images inlined, no
  scripts
- `data_json`: `clew data` as JSON, and the files of the browser's view (docs/api.md)
- `data_terminal`: `clew data` on one screen: every loader, how fast it is, and what is wrong with the
  data
- `field_text`: loaders and the fields of their samples and batches as text: settings, shapes, types and
  ranges
- `loader_failure`: a loader's failure, printed after the traceback: the sample, the stage and the user's
  lines
- `speed_report`: how fast a loader is and why: the bottleneck first, then stages, sizes, padding and
  settings
- `speed_text`: measurements of a loader in words: the same on the terminal and in HTML
- `survey_report`: the results of a dataset survey: a table of fields, labels as bars, and the rest in
  words
"""
