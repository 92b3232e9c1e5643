"""The path of a sample from the dataset to the model: shown, measured and surveyed.

Enter at `run.py`. May import: records, measure, hooks, labs.snapshot.

- `failing_sample`: traces a loader's exception back to the sample: its index, the stage, and the user's
  line
- `field_values`: splits a sample into fields, each an array or a text, for anything a dataset can return
- `loader_view`: the view of one loader: samples, the same samples as the model gets them, and the
  differences
- `program_loaders`: finds the loaders of a running program: those it creates and iterates, and what its
  models get
- `readable_loader`: a loader that can be read without side effects: its samples, its batches and the stages
  in between
- `run`: runs `clew data`: shows, measures and surveys the loaders, in that order, within a time limit
- `sample_path`: follows one sample through every stage: its input, its output and how long it took
- `stage_trace`: traces samples through the stages: the input, the output and the time of each
- `token_decoder`: decodes token ids with a tokenizer or vocabulary found in the dataset, collate or the
  script
- `user_errors`: short descriptions of errors in the user's code, with the line where they were raised
- `value_view`: describes any value for display: its type and range, and an image, text or waveform
- `workerless_loader`: runs every loader without workers, in one process, where debuggers and tracebacks
  work
- `speed/`: how fast a loader is, why, and what would be faster
- `survey/`: a whole dataset read through: copies, outliers, labels, corrupt samples
"""
