"""One run from start to verdict: the place where recording, judging and drawing meet.

Enter at `session.py`. May import: everything but api, cli and web.

- `active_session`: the one session of this process, and what a forked child does with it
- `incidents`: what failed inside Clew: recorded, reported once, and never the program's problem
- `live_judge`: runs the checks during a run, on the writer's thread and within a share of its time
- `loader_errors`: after an exception from a DataLoader: finds, reports and records which sample caused it
- `project_settings`: what `pyproject.toml` says about Clew:
- `run_meta`: who, what, when: the metadata of a run before it starts
- `run_options`: the options of `clew run`: read from the command line, passed to the session
- `run_report`: what a run says of itself on stderr: a line when it starts, the verdict when it is over,
  the exit code
- `script_errors`: the exception that ended the script: recorded, and explained after the program's own
  traceback
- `session`: the whole flow on one screen: start, attach to torch, record, judge, report
- `source_files`: the user's own source, kept with the run: a finding can then be shown at its line on any
  machine
- `start_facts`: what is written into the log when a run starts: arguments, the project's settings, the
  state of git
- `torch_attachment`: A session's hold on torch: waits until torch is imported, attaches the watcher and
  wires the activities
- `user_notes`: what the program itself tells a run: `clew.log`, `clew.config` and `clew.ignore`
- `activities/`: what a run may do besides being recorded and judged
"""
