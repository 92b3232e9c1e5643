"""Files beside the log of a run: a profile and samples, in the formats of docs/api.md."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

FORWARD = [
    {"name": "features.0", "value": 0.003, "module": "features.0", "file": "train.py", "line": 20},
    {"name": "classify", "value": 0.001, "module": "classify"},
]
HOSTILE = "print('<img src=x onerror=alert(1)>')"
PROFILE: dict[str, Any] = {
    "version": 1,
    "steps": [40, 49],
    "flame": {
        "unit": "s",
        "root": {
            "name": "step",
            "value": 0.01,
            "children": [
                {"name": "forward", "value": 0.004, "children": FORWARD},
                {"name": "backward", "value": 0.005, "children": []},
            ],
        },
    },
    "detailed": 8,
    "step_median": 0.01,
    "step_p95": 0.013,
    "samples_per_second": 3200.0,
    "unattributed": 0.0004,
    "threads": 2,
    "cores": 4,
    "device": "cpu",
    "parts": [
        {"name": "data", "median": 0.0006, "p95": 0.002, "share": 0.06, "steps": 60},
        {"name": "forward", "median": 0.004, "p95": 0.005, "share": 0.4, "steps": 60},
        {"name": "backward", "median": 0.005, "p95": 0.006, "share": 0.5, "steps": 60},
    ],
    "python": {"name": "main", "value": 0.01, "children": [{"name": "forward", "value": 0.004, "line": 12}]},
    "ops": [
        {
            "module": "features.0",
            "op": "aten::conv2d",
            "shapes": "[8, 1, 28, 28]",
            "calls": 1,
            "forward": 0.003,
        },
        {"module": "(optimizer)", "op": "aten::add_", "calls": 4, "forward": 0.0001},
    ],
    "lines": [
        {"file": "train.py", "line": 30, "code": "loss.backward()", "self": 0.0001, "total": 0.005},
        {"file": "train.py", "line": 33, "code": HOSTILE, "self": 0.002, "total": 0.002, "kind": "logging"},
    ],
    "syncs": [{"op": ".item()", "calls": 1, "seconds": 0.0002, "file": "train.py", "line": 33, "code": "x"}],
    "memory": {
        "unit": "B",
        "peak": 4_194_304,
        "kinds": {"activations": 3_145_728, "parameters": 1_048_576},
        "timeline": [[0.0, 1_048_576], [0.004, 4_194_304], [0.01, 1_048_576]],
        "processes": [
            {
                "pid": 11,
                "role": "main",
                "rss": 900_000_000,
                "pss": 800_000_000,
                "slope": 4096.0,
                "readings": [[0, 800_000_000], [30, 900_000_000]],
            },
            {"pid": 12, "role": "loader worker", "rss": 300_000_000},
        ],
        "growth": {"slope": 4096.0, "owner": "list `losses` in train.py:33"},
        "root": {
            "name": "peak",
            "value": 4_194_304,
            "children": [{"name": "activations", "value": 3_145_728}],
        },
    },
    "modules": [
        {
            "module": "classify",
            "class": "Linear",
            "calls": 10,
            "forward": 0.001,
            "self": 0.001,
            "memory": 1024,
        },
        {
            "module": "features.0",
            "class": "Conv2d",
            "calls": 10,
            "forward": 0.003,
            "self": 0.003,
            "memory": 8192,
        },
    ],
    "notes": ["one note"],
}


def picture(grey: list[list[int]]) -> str:
    """A PNG of these values, as an address that holds it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(grey[0]), len(grey), 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(row) for row in grey))
    made = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(made).decode()}"


def samples() -> list[dict[str, Any]]:
    square = [[255 if row < 2 and column < 2 else 30 for column in range(4)] for row in range(4)]
    about = {"phase": "train", "step": 3}
    return [
        {
            "id": "1",
            **about,
            "kind": "image",
            "label": 0,
            "prediction": 0,
            "loss": 0.1,
            "image": picture(square),
        },
        {
            "id": "2",
            **about,
            "kind": "image",
            "label": 0,
            "prediction": 3,
            "loss": 2.5,
            "image": picture(square),
        },
        {
            "id": "3",
            **about,
            "kind": "image",
            "label": 1,
            "prediction": 1,
            "image": "https://evil.example/x.png",
        },
        {"id": "4", **about, "kind": "text", "label": 1, "text": "<img src=x onerror=alert(1)>"},
    ]


def batches() -> list[dict[str, Any]]:
    given = {"name": "input[0]", "shape": [32, 1, 12, 12], "dtype": "float32", "min": -0.5, "max": 1.6}
    wanted = {"shape": [32], "dtype": "int64", "values": [3, 1, 0]}
    return [{"step": 0, "phase": "train", "loader": 0, "inputs": [given], "targets": [wanted]}]


def add_files(run: Path) -> None:
    """Put them into a run's folder."""
    for name, content in (
        ("traces/profile.json", PROFILE),
        ("data/samples.json", {"version": 1, "samples": samples()}),
        ("data/batches.json", {"version": 1, "batches": batches()}),
    ):
        file = run / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content))
