"""The server behind `clew ui`: an HTTP API over a folder of runs, and the page that uses it.

Enter at `server.py`, then `app.py`. May import: records, store, checks, render.

- `answer_shapes`: the shapes of the API's answers, each defined once
- `app`: the HTTP application: routes, errors, the page and its files
- `access_control`: access control: a token, the server's own host names, and no requests from other pages
- `endpoints`: the endpoints of the API with their parameters: routing, OpenAPI and docs/api.md come from
  this table
- `live_events`: live updates as server-sent events
- `openapi`: describes the API: as an OpenAPI document, as TypeScript types, and as the tables of
  docs/api.md
- `responses`: what the server sends: strict JSON (only finite numbers, only valid text), and its HTML
  pages
- `server`: runs the server: one socket, and a clean shutdown
- `shape_fields`: the fields of the API's shapes, from which OpenAPI, the TypeScript types and docs/api.md
  are generated
- `answers/`: what the API answers, apart from HTTP
- `runs/`: the runs that are served: found, opened, judged
"""
