"""Appending to a run's log, next to free for the training thread.

Enter at `log_writer.py`. May import: records.

- `frames`: the bytes of a segment: a magic word, then frames of length, CRC32 and payload
- `log_writer`: the log's writer: called by the training thread, and next to free for it
- `payloads`: turning what was queued into payloads, on the writer's thread
- `process_identity`: who writes a run, and whether that process still lives
- `row_blocks`: blocks of rows: `B`, table and row count, then steps and values as raw little-endian
  arrays
- `segment_file`: the writing end of a segment: plain write(), rolling over, and the heartbeat
- `site_numbers`: numbers for sites and tables, so that a row need not repeat where it belongs
"""
