"""The log of a run, which is the truth, and the index, which is a cache.

Enter at `write/log_writer.py` and `read/run_reader.py`. May import: records.

- `index/`: any zoom of a long series in milliseconds: a cache that can be built again
- `read/`: reading a run folder, while it grows or long after
- `write/`: appending to a run's log, next to free for the training thread
"""
