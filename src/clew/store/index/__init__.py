"""Any zoom of a long series in milliseconds: a cache that can be built again.

Enter at `series_index.py`. May import: records, store.read, store.write.

- `index_cache`: SQLite cache of the index: its place, its schema and its chunks
- `ingest`: reads the log into the index: rows become chunks, and the levels above are kept up to date
- `index_layout`: layout of rows in the index, and reading them: bands of a table, in lanes of sixteen
  sites, in chunks
- `downsampling`: min/max pyramid: buckets of sixteen rows on each level, for any zoom of a series
- `series_index`: the viewer's index of series: any zoom of ten million points in milliseconds
"""
