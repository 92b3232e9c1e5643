"""The log of a run, which is the truth, and the index, which is a cache.

Enter at `write/log_writer.py` and `read/run_reader.py`. May import: records.

- `index/`: any zoom of a long series in milliseconds: a cache that can be built again
- `read/`: reads a run folder, while it is written or later
- `write/`: appends to a run's log, at almost no cost to the training thread
"""
