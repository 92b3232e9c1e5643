"""Any zoom of a long series in milliseconds: a cache that can be built again.

Enter at `series_index.py`. May import: records, store.read, store.write.

- `index_cache`: the SQLite file behind the index: its place, its schema and its chunks
- `ingest`: taking the log into the index: blocks of rows to chunks, with the levels above kept up to date
- `lanes`: how rows lie in the index: bands of a table, in lanes of sixteen sites, in chunks
- `pyramid`: buckets of sixteen, of sixteen, of sixteen: the arithmetic of the min/max pyramid
- `series_index`: the viewer's index: any zoom of a series of ten million points in milliseconds
- `wide_read`: A signal at all its sites at once: what a map of layers by steps needs
"""
