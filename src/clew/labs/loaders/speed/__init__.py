"""How fast a loader is, why, and what would be faster.

Enter at `speed_measurement.py`. May import: records, hooks, labs.snapshot, labs.loaders.

- `batch_padding`: how much of a batch of sequences is filler, and what putting samples of like length
  together would save
- `field_sizes`: what the fields of a sample weigh, and the smallest type that would hold their values
- `hot_lines`: the lines of the user's own on which reading samples spends its time, by sampling Python's
  stack
- `loader_rate`: A loader at work by itself or in turn with a training step: how many samples a second it
  delivers
- `read_functions`: functions that are known to read or decode: while samples are timed, their time is
  told apart
- `speed_measurement`: A pipeline measured: how fast, what is slow in it, what it weighs, what would be
  faster
- `stage_times`: how long a sample takes in each stage, in one process: reading, decoding, every
  transform, collate
- `worker_sweep`: workers and prefetching, tried one setting after the other: from coarse to fine, several
  rounds of each
- `worker_transfer`: what it takes to bring a batch from a worker to the parent: a real worker, with
  samples at hand
"""
