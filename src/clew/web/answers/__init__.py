"""What the API answers, apart from HTTP.

Enter at `api_answers.py`. May import: records, store, render, web, web.runs.

- `api_answers`: answers every API request, independent of HTTP: used by the server and by the report
- `layer_maps`: layers by steps: any signal with a layer map, for all layers at once
- `recorded_histograms`: a layer's histograms over time: bins of powers of two, and signed bins of values
  where recorded
- `report_file`: the report: the browser page with all answers inlined, in one file that needs no server
- `run_comparison`: compares runs side by side: settings, results and findings
- `run_files`: answers from the other files in a run folder: graph, profile, data, notes
- `run_rows`: runs as rows of a list, and one run in detail
- `series_catalogue`: the list of a run's series in reading order, their keys for links and their labels
  for people
- `series_points`: answers about series: the list of them, and their points at any zoom, by step, time or
  epoch
"""
