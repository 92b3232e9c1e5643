"""Findings and measurements as text, JSON, HTML and SVG; draws, never recomputes.

Enter at `verdict/verdict_terminal.py`. May import: records, store, checks.

- `bundle`: bundles the built browser page into one file, with style, code and data inlined: it needs no
  network
- `columns`: A table on a screen: picks the columns that fit, and gives one of them the remaining width
- `images`: recorded images: validates the pixels, resizes them and encodes them as PNG
- `number_text`: formats numbers for people
- `plot_line`: A line to plot: its points, their meaning, and the ends of the axes
- `plot_svg`: A line plot as inline SVG, in the colours of the page around it
- `plot_terminal`: A line plot in the terminal: braille dots where the stream supports them, stars where
  not
- `progress_line`: A one-line progress display, redrawn in place on a terminal
- `renderers`: the user's own verdict formats: `clew why --format NAME`, `clew.open_run(...).render(NAME)`
- `rich_rng`: keeps rich away from Python's random generator: rich draws style names from it, which
  changes the run
- `run_summary`: what a rendering says about the run itself, next to the verdict
- `safe_text`: escapes text that comes from a run, so that it can't control the terminal it is shown on
- `screen`: A stream to draw on: its width, its colours, and the characters it supports
- `size_text`: formats large numbers, bytes and counts for people
- `sparkline`: A series as one line of block characters
- `stderr_messages`: Clew's messages on stderr while the user's program runs: they may get lost, and do no
  harm
- `verdict_json`: A verdict as JSON. Its shape is stable: scripts and CI settings rely on it
- `data/`: what `clew data` shows
- `network/`: networks as tables, trees and graphs
- `profile/`: profiles on the terminal, compared, and as pages
- `verdict/`: a verdict: what is wrong, where, on what evidence, and the fix
"""
