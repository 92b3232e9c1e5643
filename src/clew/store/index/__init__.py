"""Any zoom of a long series in milliseconds: a cache that can be built again.

Enter at `series_index.py`. May import: records, store.read, store.write.

- `index_cache`: SQLite cache of the index: its place, its schema and its chunks
- `ingest`: reads the log into the index: rows become chunks, and the levels above are kept up to date
- `lanes`: layout of rows in the index: bands of a table, in lanes of sixteen sites, in chunks
- `pyramid`: min/max pyramid: buckets of sixteen rows on each level, for any zoom of a series
- `series_index`: the viewer's index of series: any zoom of ten million points in milliseconds
- `wide_read`: reads a signal at all its sites at once, for a map of layers by steps
"""
