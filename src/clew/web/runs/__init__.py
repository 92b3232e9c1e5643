"""The runs that are served: found, opened, judged.

Enter at `run_library.py`. May import: as web.

- `judge_process`: judging runs in a process of its own: the server stays small, answers meanwhile, and
  outlives a crash
- `opened_run`: one run, open: its index for the series, its facts and events in memory, nothing else
- `run_digest`: A run judged: its verdict, and what a list of runs shows of it. Reads all of the log
- `run_library`: A folder of runs: which there are, how each one is, and opening them
"""
