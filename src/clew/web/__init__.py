"""The server behind `clew ui`: an HTTP API over a folder of runs, and the page that uses it.

Enter at `server.py`, then `app.py`. May import: records, store, checks, render.

- `answer_shapes`: the shapes of the API's answers, each defined once
- `app`: the HTTP application: routes, errors, the page and its files
- `gate`: access control: a token, the server's own host names, and no requests from other pages
- `live_events`: live updates as server-sent events
- `openapi`: the API as an OpenAPI document: paths and answer shapes. Tests compare it with real answers
- `page`: the page as the server sends it, and the replies when it is not built or the token is missing
- `series_names`: names of series and sites: keys for links, labels for people. Units are in `signals`
- `server`: runs the server: one socket, and a clean shutdown
- `shape_pages`: the answer shapes as JSON Schema, as TypeScript types, and as the tables of docs/api.md
- `strict_json`: strict JSON: only finite numbers, and only valid text
- `answers/`: what the API answers, apart from HTTP
- `runs/`: the runs that are served: found, opened, judged
"""
