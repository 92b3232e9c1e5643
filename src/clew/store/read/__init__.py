"""Reading a run folder, while it grows or long after.

Enter at `run_reader.py`. May import: records, store.write.

- `decoder`: from payloads to what they say, one payload at a time
- `log_end`: the last things in a log, found from its end: they stand for themselves, whatever lies before
  them
- `run_data`: what a log says, in columns: fed by the reader from files and by the writer while it writes
- `run_errors`: what can be wrong with a run folder, each said in one line that tells what to do
- `run_folders`: run folders: making, listing, finding and removing them
- `run_info`: A run at a glance, without reading its log: what a list of hundreds of runs can afford
- `run_reader`: reading a run folder, while it grows or long after
- `segment_tail`: following the segments of one rank as they grow
"""
