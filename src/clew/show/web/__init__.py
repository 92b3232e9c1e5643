"""The browser view: an HTTP API over a folder of runs (docs/api.md), and the page that uses it."""
