"""Files that lie beside the log of a run: a profile and samples, in the formats of docs/api.md."""

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
    "memory": {
        "unit": "B",
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
    "recommendations": [{"text": "Convolutions take most of the step", "gain": 0.2}],
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
