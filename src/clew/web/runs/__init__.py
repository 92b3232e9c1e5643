"""The runs that are served: found, opened, judged.

Enter at `run_library.py`. May import: records, store, checks, render, web, web.answers.

- `digest_cache`: the digest of a run, as it passes from the process that judges to the server and is
  cached on disk
- `judge_process`: judges runs in a separate process, so that the server stays small, responsive, and
  survives a crash
- `opened_run`: one open run: an index for its series, its facts and events in memory, nothing else
- `run_digest`: the digest of a run: its verdict, the code of each finding, and what a list of runs shows
  of it
- `run_library`: a folder of runs: lists them with their state, and opens them
"""
