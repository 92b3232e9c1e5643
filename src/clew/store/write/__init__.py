"""Appends to a run's log, at almost no cost to the training thread.

How records are serialized, the wire format, is in `payloads`, `row_blocks` and `frames`.

Enter at `log_writer.py`. May import: records.

- `frames`: file format of a log segment: a magic word, then frames of length, CRC32 and payload
- `log_writer`: log writer: queues records on the training thread, nearly for free, and writes them on its
  own thread
- `payloads`: what goes into the log: numbers for sites and tables, and queued rows and records as payloads
- `process_identity`: which process writes a run, and whether it is still alive
- `row_blocks`: blocks of rows: `B`, table and row count, then steps and values as raw little-endian
  arrays
- `segment_file`: segment file of the log: plain write(), rollover to the next file, and the heartbeat
"""
