"""What series and sites are called: keys for links, labels for people, units for numbers."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath

from clew.records.site import Site

ORDER = ("loss", "metric", "lr", "grad", "clip", "time", "memory", "batch", "activation", "gradient",
         "weight", "update")  # fmt: skip
TIMES = ("wall", "step", "time")
LAYERED = ("activation", "gradient", "weight", "update", "first_input", "input", "eval_input")
HISTOGRAM = re.compile(r"(.+)\.log2hist\.(\d\d)")
SIGNED = re.compile(r"(.+)\.histogram\.(lo|hi|\d\d)")

SHARE = re.compile(
    r"zeros|dead_fraction|saturated|(target_)?top_share|switches|accuracy|present|simplex|ends|outside|whole|share"
    r"|distinct|constant(_features)?|seen|relabelled|negative|inverted|padding|empty|future_only"
)
COUNT = re.compile(r"nonfinite|classes|backwards|lost|forwards|batches|count|features|samples|known|size")

ABOUT = {
    "loss": "the tensor that backward() was called on",
    "wall": "time since the run began",
    "step.time": "from the end of the previous step to the end of this one",
    "time.data": "waiting for the loader",
    "time.forward": "in the model's forward",
    "time.backward": "in backward()",
    "time.optimizer": "in the optimizer's step",
    "time.rest": "the rest of the step",
    "time.clew": "Clew's own time on the training thread",
    "memory.rss": "memory of the process",
    "batch.size": "samples in the step's batches",
    "grad.norm": "2-norm over all gradients that the optimizer uses",
    "grad.stale": "1 if the gradients of an earlier step were not cleared",
    "lr": "learning rate of the first parameter group",
    "clip.norm": "total norm before clipping",
    "clip.limit": "clipping limit",
    "update.ratio": "norm of the update divided by norm of the value",
}
ENDINGS = {
    "mean": "mean of the finite elements",
    "std": "standard deviation",
    "min": "smallest element",
    "max": "largest element",
    "norm": "2-norm",
    "zeros": "share of elements that are exactly zero",
    "nonfinite": "NaN and infinities",
    "dead_fraction": "share of units that are zero for the whole batch",
    "saturated": "share at the flat ends of the activation",
}


def series_key(rank: int, signal: str, site_key: str) -> str:
    """The name of a series in links: the same wherever and whenever the run is read."""
    return _digest(f"{rank}\n{signal}\n{site_key}")


def site_id(site_key: str) -> str:
    return _digest(site_key)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def group_of(signal: str) -> str:
    """The chapter that a signal belongs to."""
    first = signal.partition(".")[0]
    return "time" if first in TIMES else first


def group_rank(group: str) -> int:
    return ORDER.index(group) if group in ORDER else len(ORDER)


def is_histogram(signal: str) -> bool:
    return HISTOGRAM.fullmatch(signal) is not None or SIGNED.fullmatch(signal) is not None


def unit_of(signal: str) -> str:
    """Empty for a number without one."""
    group, last = group_of(signal), signal.rpartition(".")[2]
    if group == "time":
        return "s"
    if signal == "memory.rss":
        return "B"
    if last == "headroom":
        return "bits"
    if group == "metric":
        return ""  # the user's own: nobody has said
    if SHARE.fullmatch(last) or is_histogram(signal):
        return "share"
    return "count" if COUNT.fullmatch(last) else ""


def about(signal: str) -> str:
    known = ABOUT.get(signal)
    return known if known is not None else ENDINGS.get(signal.rpartition(".")[2], "")


def site_label(site: Site, *, several_roots: bool = False) -> str:
    """`encoder.fc1.weight`, or what else says where."""
    if site.module is not None:
        path = site.module or site.root or "the model"
        parts = [site.root if several_roots and site.module and site.root else None, path, site.param]
        name = ".".join(part for part in parts if part)
        return f"{name} ({site.op})" if site.op and site.op not in ("input", "step") else name
    return site.op if site.op and site.op.startswith("input") else ""


def place_label(site: Site) -> str:
    """`train.py:34`."""
    if site.file is None:
        return ""
    name = PurePath(site.file.replace("\\", "/")).name
    return name if site.line is None else f"{name}:{site.line}"
