"""What a run may do besides being recorded and judged.

Enter at `activity_list.py`. May import: records, measure, store, hooks, checks, labs, render, session.

- `activity`: the interface of everything that a run does besides recording and checking
- `activity_list`: the activities of a run, chosen by its options
- `data_inspection`: `clew data` in a recorded run: watches the first steps and inspects the loaders
- `faster_steps`: `clew profile --try` and `--batch-sizes`: tries faster steps and other batch sizes,
  after the run
- `first_steps`: captures a script's first steps, works on them between two steps, then ends the script or
  lets it continue
- `fix_proofs`: `clew run --prove`, and the end of `clew check`: tries the fixes of the findings on a
  snapshot
- `framework_adapters`: adapters of training frameworks, each attached when the program imports its
  framework
- `graph_recording`: `--graph`: records the graph of each model in the first steps, with one extra forward
  each
- `growth_recording`: memory growth: whether the run's memory grows, and what keeps references to what grows
- `nan_replay`: NaN replay: runs a step with a non-finite loss or gradient again to find the cause, and
  saves a repro
- `numerics_trace`: `--trace-numerics`: checks every operation in a few steps
- `preflight_experiments`: `clew check` in a recorded run: captures the first steps and runs the preflight
  experiments
- `print_shapes`: `--print-shapes`: prints the input and output shapes of each layer, and again when they
  change
- `profile_recording`: `clew profile` in a recorded run: opens profiling windows between steps, and
  assembles the profile
- `source_copies`: copies the user's own source files that the recording names into the run's folder
- `tracker_feed`: tracker feed: passes everything that is recorded on to trackers, which send it elsewhere
- `user_checks`: the user's own checks: records their findings for readers of the run who do not have the
  checks
- `user_signals`: the user's own signals: functions called on sampled steps whose numbers are recorded
"""
