"""What the API answers, apart from HTTP.

Enter at `desk.py`. May import: as web.

- `axes`: the three x axes: steps, seconds since the run began, epochs
- `desk`: answers every API request, independent of HTTP: used by the server and by the report
- `finding_source`: the source lines a finding refers to, and its fix as a diff where the edit is certain
- `layer_maps`: layers by steps: any statistic of all layers as one map, and a layer's histograms over
  time
- `report_file`: the report: the browser page with all answers inlined, in one file that needs no server
- `run_comparison`: compares runs side by side: settings, results and findings
- `run_files`: answers from the other files in a run folder: graph, profile, data, notes
- `run_rows`: runs as rows of a list, and one run in detail
- `series_catalogue`: the list of a run's series, in the order in which people look for them
- `series_points`: answers about series: the list of them, and their points at any zoom
- `signed_histograms`: signed histograms of a layer, where recorded: bins of values rather than of powers
  of two
"""
