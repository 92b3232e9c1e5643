"""Reads a run folder, while it is written or later.

Enter at `run_reader.py`. May import: records, store.write.

- `decoder`: decodes payloads of the log into records, one payload at a time
- `run_data`: the content of a log in columns, fed by the reader from files or by the writer while it
  writes
- `run_errors`: errors of run folders. Each message is one line that says what to do
- `run_folders`: run folders: create, list, find and remove them
- `run_info`: summary of a run without reading its log: cheap enough for a list of hundreds of runs
- `run_metadata`: metadata of a run, its `run.json`: who ran what, when and where
- `run_reader`: run reader: reads a run folder, while it is written or later
- `segment_tail`: reads the log segments of one rank: forwards as they grow, and backwards from the end
"""
