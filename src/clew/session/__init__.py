"""One run from start to verdict: the place where recording, judging and drawing meet.

Enter at `session.py`. May import: records, measure, store, hooks, checks, labs, render.

- `active_session`: the one session of this process, and what a forked child does with it
- `live_judge`: runs the checks during a run, on the writer's thread and within a share of its time
- `project_settings`: what `pyproject.toml` says about Clew
- `recording`: the recording of a run: its folder and log, the facts known at its start, and failures inside
  Clew
- `run_meta`: who, what, when: the metadata of a run before it starts
- `run_options`: the options of `clew run`: read from the command line, passed to the session
- `run_report`: how a run reports itself: a line at the start; the verdict, its file and the exit code at the
  end
- `script_errors`: the exception that ended the script: recorded, and explained after the program's own
  traceback
- `session`: the whole flow on one screen: start, attach to torch, record, judge, report
- `torch_attachment`: attaches a session to torch as soon as it is imported: the watcher, the seams and the
  activities
- `user_log`: what the program itself adds to its run: `clew.log`, `clew.config` and `clew.ignore`
- `activities/`: what a run may do besides being recorded and judged
"""
