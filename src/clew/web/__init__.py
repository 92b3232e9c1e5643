"""The server behind `clew ui`: an HTTP API over a folder of runs, and the page that uses it.

Enter at `server.py`, then `app.py`. May import: records, store, checks, render.

- `answer_shapes`: the shapes of the API's answers, each written once
- `app`: the HTTP face of the desk: routes, errors, the page and its files
- `gate`: who may come in: a token, this server's own names, and no page of anybody else's
- `live_events`: what changed, as it changes: server-sent events
- `openapi`: the API as an OpenAPI document: its paths, and the shapes of its answers. Tests hold it
  against answers
- `page`: the page as the server sends it, and what is sent where there is none or where the token is
  missing
- `series_names`: what series and sites are called: keys for links, labels for people. Units are in
  `signals`
- `server`: running the server: one socket, and a clean end
- `shape_pages`: the shapes of the answers as JSON Schema, as types of TypeScript, and as tables of
  docs/api.md
- `strict_json`: numbers and text as strict JSON: nothing that is not finite, nothing that is not text
- `answers/`: what the API answers, apart from HTTP
- `runs/`: the runs that are served: found, opened, judged
"""
