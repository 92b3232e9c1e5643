"""One run from start to verdict: the place where recording, judging and drawing meet.

Enter at `session.py`. May import: everything but api, cli and web.

- `live_judge`: the checks at work while a run goes on, on the writer's thread and within a share of its
  time
- `live_pace`: when to look at a run that is going on: by its steps while it is young, later by what
  looking costs
- `loader_errors`: after an exception that came out of a DataLoader: which sample it was, said and
  recorded
- `project_settings`: what `pyproject.toml` says about Clew:
- `run_meta`: who, what, when: what is known of a run before it does anything
- `run_options`: what `clew run` was asked to do: read from the command line, handed to the session
- `session`: the whole flow on one screen: attach to a program, record it, judge it, say what is wrong
- `source_files`: the user's own source, kept with the run: a finding can then be shown at its line on any
  machine
- `activities/`: what a run may do besides being recorded and judged
"""
