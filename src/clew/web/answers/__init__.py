"""What the API answers, apart from HTTP.

Enter at `desk.py`. May import: as web.

- `axes`: the three ways to say when: steps, seconds since the run began, epochs
- `desk`: what the API answers, apart from HTTP: the server and the report ask the same desk
- `finding_source`: the lines that a finding speaks of, and its fix as a diff where that can be said for
  certain
- `layer_maps`: layers by steps: any statistic of every layer as one map, and a layer's histograms over
  time
- `report_file`: the report: the same page with the answers inlined, in one file that asks nobody
- `run_comparison`: runs side by side: what was set differently, what came out, what was found
- `run_files`: answers from what lies in the run folder beside the log: graph, profile, data, notes
- `run_rows`: runs as rows of a list, and one run in detail
- `series_catalogue`: the series of a run, in the order in which a person looks for them
- `series_points`: answers with series: the list of them, and their points at any zoom
- `signed_histograms`: signed histograms of a layer, where they were recorded: values rather than powers
  of two
"""
