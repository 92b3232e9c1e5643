"""How fast a loader is, why, and what would be faster.

Enter at `speed_measurement.py`. May import: records, measure, hooks, labs.loaders, labs.snapshot.

- `batch_padding`: how much of a batch of sequences is padding, and what grouping samples by length would
  save
- `field_sizes`: the size of each field of a sample in bytes, and the smallest dtype that can store its
  values
- `loader_rate`: measures the samples per second of a loader, alone or alternating with training steps
- `speed_measurement`: measures a loader: how fast it is, what is slow, how large its data is, and what
  would be faster
- `stage_times`: times each stage of a sample in one process: reading, decoding, every transform, collate
- `worker_sweep`: tries settings for workers and prefetching: from coarse to fine, several rounds of each
- `worker_transfer`: measures the transfer of a batch from a worker to the parent, with a real worker
  process
"""
