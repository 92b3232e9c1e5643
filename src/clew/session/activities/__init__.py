"""What a run may do besides being recorded and judged.

Enter at `activity_list.py`. May import: as session.

- `activity`: what a run may do besides being watched and judged: the one interface of all activities
- `activity_list`: which activities a run has, by what was asked for
- `data_inspection`: `clew data` in a recorded run: the first steps are watched, and the pipelines looked
  at
- `faster_steps`: `clew profile --try` and `--batch-sizes`: when the run is over, the step is tried in
  other ways
- `first_steps`: the first steps of a script: captured, looked at between two of them, and the script
  ended or let go on
- `fix_proofs`: `clew run --prove`, and the end of `clew check`: the fixes of what was found are tried on
  a snapshot
- `framework_adapters`: adapters of training frameworks: each is attached when the program imports its
  framework
- `graph_recorder`: `clew run --graph`: the graph of a model, from its first training forward run again on
  the side
- `graph_recording`: `--graph`: the models are drawn in the first steps, with one more forward each
- `leak_watch`: whether the memory of the run grows, and who holds what grows: in every run, and closely
  in a profile
- `nan_replay`: A loss or gradient that is not finite: its step is run again to find the cause, and saved
  as a repro
- `numerics_trace`: `--trace-numerics`: some steps in which every operation is looked at
- `preflight_experiments`: `clew check` in a recorded run: the first steps are captured and experimented
  on
- `print_shapes`: `--print-shapes`: what goes into each layer and comes out, once and whenever it changes
- `profile_recording`: `clew profile` in a recorded run: windows between the steps, and a profile put
  together at the end
- `source_copies`: the user's own source files that the recording names are copied into the run's folder
- `tracker_feed`: trackers: whoever wants all that is recorded as it is written, to send it elsewhere
- `user_checks`: the user's own checks: what they say is written down, for readers of the run who do not
  have them
- `user_signals`: signals of the user's own: a function that is called on sampled steps, and whose numbers
  are recorded
"""
