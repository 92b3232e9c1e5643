"""Hand-made profiles to draw, export and compare: a network for pictures, a transformer, and odd ones."""

from __future__ import annotations

import math
from dataclasses import replace

from clew.records.step_costs import (
    FlameFrame,
    Growth,
    LineCost,
    ModuleCost,
    OpCost,
    PartCost,
    ProcessMemory,
    Profile,
    Roof,
    StepMemory,
    Sync,
    TimelineEvent,
)

HOSTILE = "</script><img src=x onerror=alert(1)> \x1b[31mred\x07 \u202e=cmd|'x'!A1 @DATA@"
MB = 1 << 20


def frame(name: str, value: float, *children: FlameFrame, **place: object) -> FlameFrame:
    own = max(value - sum(child.value for child in children), 0.0)
    return FlameFrame(name, value, own, children=children, **place)  # type: ignore[arg-type]


def part(name: str, median: float, p95: float, step: float) -> PartCost:
    return PartCost(name, median, p95, median / step, 300)


def convolutions() -> Profile:
    """A small CNN that waits for its data."""
    step = 0.0412
    return Profile(
        steps=(40, 271),
        detailed=24,
        step_median=step,
        step_p95=0.0489,
        samples_per_second=1553.4,
        parts=(
            part("data", 0.0151, 0.0212, step),
            part("forward", 0.0082, 0.0091, step),
            part("backward", 0.0139, 0.0147, step),
            part("optimizer", 0.0021, 0.0026, step),
            part("logging", 0.0009, 0.0012, step),
            part("rest", 0.0004, 0.0006, step),
            part("clew", 0.0003, 0.0005, step),
        ),
        modules=(
            module("", "Net", 0.0079, 0.0136, 0.0003, 0.0004, flops=1.9e9, roof=0.31),
            module("features", "Sequential", 0.0066, 0.0118, 0.0001, 0.0001, flops=1.8e9, roof=0.34),
            module("features.0", "Conv2d", 0.0041, 0.0071, 0.0041, 0.0071, 1.1e9, 0.36, 4 * MB, 12 * MB),
            module("features.1", "ReLU", 0.0003, 0.0006, 0.0003, 0.0006, 1e6, 0.72, 0, 12 * MB),
            module("features.2", "Conv2d", 0.0021, 0.0040, 0.0021, 0.0040, 7.1e8, 0.35, MB, 6 * MB),
            module("classify", "Linear", 0.0010, 0.0014, 0.0010, 0.0014, 1.2e8, 0.12, MB // 2, MB // 4),
        ),
        ops=(
            OpCost(
                "features.0",
                "aten::convolution",
                "[64, 3, 32, 32] [32, 3, 3, 3]",
                "1, 1, 1",
                1,
                0.0041,
                0.0071,
            ),
            OpCost(
                "features.2",
                "aten::convolution",
                "[64, 32, 16, 16] [64, 32, 3, 3]",
                "1, 1, 1",
                1,
                0.002,
                0.004,
            ),
            OpCost(
                "classify",
                "aten::addmm",
                "[10] [64, 4096] [4096, 10]",
                "",
                1,
                0.0010,
                0.0014,
                1.2e8,
                1e6,
                0.12,
            ),
            OpCost("features.1", "aten::relu", "[64, 32, 32, 32]", "", 1, 0.0003, 0.0006),
        ),
        lines=(
            LineCost("train.py", 50, "<module>", "main()", 0.0, 0.0412),
            LineCost("train.py", 31, "main", "for x, y in loader:", 0.0002, 0.0151, "data"),
            LineCost("train.py", 34, "main", "loss.backward()", 0.0001, 0.0139),
            LineCost("train.py", 12, "Net.forward", "return self.classify(self.features(x))", 0.0001, 0.0079),
            LineCost("train.py", 37, "main", "history.append(loss.item())", 0.0008, 0.0008, "logging"),
        ),
        syncs=(Sync("item", 1, 0.0008, "train.py", 37, "history.append(loss.item())"),),
        flame=step_flame(),
        python=python_flame(),
        timeline=(
            TimelineEvent("data", 0.0, 0.0151, "parts"),
            TimelineEvent("forward", 0.0151, 0.0082, "parts"),
            TimelineEvent("features.0", 0.0152, 0.0041, "main", "features.0"),
        ),
        memory=StepMemory(
            peak=52 * MB,
            kinds={
                "activations": 36 * MB,
                "parameters": 6 * MB,
                "gradients": 6 * MB,
                "optimizer state": 4 * MB,
            },
            timeline=((0.0, 16 * MB), (0.01, 30 * MB), (0.02, 52 * MB), (0.03, 20 * MB)),
            root=frame(
                "peak",
                52.0 * MB,
                frame("activations", 36.0 * MB, frame("features.0", 24.0 * MB)),
                frame("parameters", 16.0 * MB),
            ),
            processes=(
                ProcessMemory(
                    4211,
                    "main",
                    812 * MB,
                    640 * MB,
                    610 * MB,
                    40_000.0,
                    tuple((n, (780 + n // 10) * MB) for n in range(0, 300, 10)),
                ),
                ProcessMemory(4230, "loader worker", 402 * MB, 210 * MB, 180 * MB),
                ProcessMemory(4231, "loader worker", 400 * MB, 208 * MB, 180 * MB),
            ),
            growth=Growth(
                40_000.0,
                "list `history` in train.py:37: tensors with their graphs",
                "train.py",
                37,
                1.0,
                "graph",
            ),
        ),
        roof=Roof(4.2e10, 1.1e10, 2),
        unattributed=0.0003,
        threads=2,
        cores=4,
        notes=("PSS and USS of worker 4232 could not be read: no permission",),
    )


def module(
    path: str,
    type_: str,
    forward: float,
    backward: float,
    self_forward: float = 0.0,
    self_backward: float = 0.0,
    flops: float = 0.0,
    roof: float | None = None,
    parameters: int = 0,
    activations: int = 0,
) -> ModuleCost:
    spread = 0.02 * (forward + backward)
    return ModuleCost(
        path,
        type_,
        1.0,
        forward,
        backward,
        self_forward,
        self_backward,
        spread,
        24,
        flops,
        0.0,
        roof,
        parameters,
        activations,
    )


def step_flame() -> FlameFrame:
    features = frame(
        "features", 0.0066, frame("features.0", 0.0041, module="features.0"), frame("features.2", 0.0021)
    )
    return frame(
        "step",
        0.0412,
        frame("data", 0.0151),
        frame("forward", 0.0082, features, frame("classify", 0.001)),
        frame(
            "backward",
            0.0139,
            frame("features", 0.0118, frame("features.0", 0.0071)),
            frame("classify", 0.0014),
        ),
        frame("optimizer", 0.0021),
        frame("logging", 0.0009),
        frame("rest", 0.0007),
        frame("clew", 0.0003),
    )


def python_flame() -> FlameFrame:
    """With a function that calls itself, and the same name at two places."""
    deeper = frame("walk", 0.002, file="data.py", line=5)
    walk = frame("walk", 0.004, deeper, file="data.py", line=5)
    fetch = frame(
        "fetch", 0.011, walk, frame("decode", 0.005, file="data.py", line=20), file="data.py", line=9
    )
    forward = frame("forward", 0.006, frame("decode", 0.001, file="net.py", line=7), file="net.py", line=3)
    return frame("<module>", 0.0412, fetch, forward, file="train.py", line=1)


def transformer(layers: int = 12) -> Profile:
    """About 400 modules, most of them in twelve equal blocks."""
    modules = [module("", "Language", 0.12, 0.25, 0.001, 0.001, 2e11, 0.6)]
    modules.append(module("embed", "Embedding", 0.002, 0.006, 0.002, 0.006, 0, None, 96 * MB, 3 * MB))
    for n in range(layers):
        modules.extend(_block(f"layers.{n}", 1.0 + 0.01 * (n % 3)))
    modules.append(module("head", "Linear", 0.012, 0.022, 0.012, 0.022, 3e10, 0.7, 96 * MB, 12 * MB))
    step = 0.4
    parts = tuple(
        part(name, t, 1.05 * t, step)
        for name, t in (
            ("data", 0.004),
            ("forward", 0.12),
            ("backward", 0.25),
            ("optimizer", 0.024),
            ("rest", 0.002),
        )
    )
    return Profile(
        steps=(10, 90),
        detailed=16,
        step_median=step,
        step_p95=0.42,
        samples_per_second=20.0,
        parts=parts,
        modules=tuple(modules),
        threads=8,
        cores=8,
    )


def _block(path: str, times: float) -> list[ModuleCost]:
    inner: list[ModuleCost] = []
    for name, type_, cost in (
        ("norm1", "LayerNorm", 0.0002),
        ("attention", "Attention", 0.004),
        ("norm2", "LayerNorm", 0.0002),
        ("mlp", "Mlp", 0.0042),
    ):
        inside = cost * times
        leaf = type_ == "LayerNorm"
        inner.append(
            module(
                f"{path}.{name}",
                type_,
                inside,
                2 * inside,
                inside if leaf else 1e-4,
                inside if leaf else 2e-4,
                1e9,
                0.5,
            )
        )
        parts = (
            ()
            if leaf
            else tuple(
                f"{path}.{name}.{part}"
                for part in ("q", "k", "v", "out", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
            )
        )
        for one in parts:
            t = (inside - 1e-4) / len(parts)
            inner.append(module(one, "Linear", t, 2 * t, t, 2 * t, 7e7, 0.6, MB, MB))
    total = 0.0088 * times
    return [module(path, "Block", total, 2 * total, 1e-4, 2e-4, 1.6e10, 0.6), *inner]


def hostile() -> Profile:
    """Names that a program could have made up to do harm."""
    profile = convolutions()
    bad = replace(profile.modules[2], module=HOSTILE, type=HOSTILE, file=HOSTILE)
    flame = frame(HOSTILE, 1.0, frame(HOSTILE, 0.4, file=HOSTILE, line=3))
    memory = replace(
        profile.memory, root=flame, processes=(ProcessMemory(1, HOSTILE, 1),), kinds={HOSTILE: 7}
    )
    return replace(
        profile,
        modules=(*profile.modules, bad),
        ops=(
            OpCost(HOSTILE, "=" + HOSTILE, "-" + HOSTILE, "@" + HOSTILE, 1, 0.5, 0.5),
            OpCost("a", "b", "c", "-1", 2),
        ),
        lines=(LineCost(HOSTILE, 3, HOSTILE, HOSTILE, 0.1, 0.2, HOSTILE),),
        syncs=(Sync(HOSTILE, 1, 0.1, HOSTILE, 3, HOSTILE),),
        flame=flame,
        python=flame,
        timeline=(
            TimelineEvent(HOSTILE, 0.0, 1.0, HOSTILE, HOSTILE),
            TimelineEvent("", math.nan, -1.0),
        ),
        memory=memory,
        device=HOSTILE,
        notes=(HOSTILE,),
        files={"chrome trace": "../../secret.json", "cprofile": HOSTILE},
    )


def deep(levels: int = 3000) -> FlameFrame:
    """A stack that no recursion survives."""
    inner = FlameFrame("bottom", 1.0, 1.0)
    for n in range(levels):
        inner = FlameFrame(f"call {n}", 1.0, 0.0, children=(inner,))
    return inner
