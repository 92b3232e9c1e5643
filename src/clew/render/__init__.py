"""Findings and measurements as text, JSON, HTML and SVG; draws, never recomputes.

Enter at `verdict/verdict_terminal.py`. May import: records, store, checks.

- `bundle`: the built page of the browser as one file, with style, code and data inlined: it needs no
  network
- `columns`: A table on a screen: the columns that fit, one of them as wide as the rest leaves it
- `images`: pixels as they were recorded: checked, made smaller or larger, and put into a PNG file
- `number_text`: numbers as a person reads them
- `plot_line`: A line to look at: its points, what they mean, and where the ends of the axes lie
- `plot_svg`: A line as an inline SVG that takes its colours from the page around it
- `plot_terminal`: A line drawn with characters: eight dots to each where the stream has braille, one star
  where not
- `progress_line`: one line that says how far it is, drawn over itself on a terminal
- `renderers`: formats of the user's own for a verdict: `clew why --format NAME`,
  `clew.open_run(...).render(NAME)`
- `rich_rng`: Rich draws names for its styles from Python's generator; the program's random numbers are
  not ours
- `run_summary`: what a rendering says about the run itself, beside the verdict
- `safe_text`: text of a run is the run's, not ours: it must not command the terminal it is shown on
- `screen`: A stream to draw on: its width, its colours, and the characters that it can show
- `size_text`: large numbers as people read them
- `sparkline`: A series as one line of blocks
- `stderr_messages`: what Clew says on stderr while somebody else's program runs: it may get lost, and
  does no harm
- `verdict_json`: the machine-readable form. Its shape is stable: scripts and CI settings rely on it
- `data/`: what `clew data` shows
- `network/`: networks as tables, trees and graphs
- `profile/`: profiles on the terminal, compared, and as pages
- `verdict/`: a verdict: what is wrong, where, on what evidence, and the fix
"""
