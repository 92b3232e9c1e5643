"""Appending to a run's log, next to free for the training thread.

Enter at `log_writer.py`. May import: records.

- `frames`: file format of a log segment: a magic word, then frames of length, CRC32 and payload
- `log_writer`: log writer: queues records on the training thread, nearly for free, and writes them on its
  own thread
- `payloads`: encodes queued rows and records into payloads, on the writer's thread
- `process_identity`: which process writes a run, and whether it is still alive
- `row_blocks`: blocks of rows: `B`, table and row count, then steps and values as raw little-endian
  arrays
- `segment_file`: segment file of the log: plain write(), rollover to the next file, and the heartbeat
- `site_numbers`: numbers for sites and tables, so that a row need not repeat where it belongs
"""
