"""Findings and measurements as text, JSON, HTML and SVG; draws, never recomputes.

Enter at `verdict/verdict_terminal.py`. May import: records, store, checks.

- `html_bundle`: bundles the built browser page into one file, with style, code and data inlined: it needs no
  network
- `text_table`: a table on a screen: picks the columns that fit, and gives one of them the remaining width
- `images`: recorded images: validates the pixels, resizes them and encodes them as PNG
- `line_plot`: a line plot: its points and axes; drawn in the terminal with braille dots or stars, and as
  inline SVG
- `number_text`: formats numbers for people: counts, durations, shares, and sizes in bytes
- `renderers`: the user's own verdict formats: `clew why --format NAME`, `clew.open_run(...).render(NAME)`
- `run_summary`: what a rendering says about the run itself, next to the verdict
- `safe_text`: escapes text that comes from a run, so that it can't control the terminal it is shown on
- `screen`: a stream to draw on: its width, its colours, and the characters it supports
- `sparkline`: a series as one line of block characters
- `stderr_messages`: Clew's messages on stderr while the user's program runs: they may get lost, and do no
  harm
- `verdict_json`: a verdict as JSON. Its shape is stable: scripts and CI settings rely on it
- `data/`: what `clew data` shows
- `network/`: networks as tables, trees and graphs
- `profile/`: profiles on the terminal, compared, and as pages
- `verdict/`: a verdict: what is wrong, where, on what evidence, and the fix
"""
