"""The log is the truth, the index is a cache.

`writer` appends frames to one log per rank, `data` holds what the frames say, `reader` tails
a run folder into it, `runs` lists and finds run folders, `index` is the viewer's rebuildable
cache for zooming. Opening a run never executes anything from it.

Import what you need from the modules: `clew run` must not pay for SQLite or the readers.
"""
