"""Names that programs give to labels and to held-out data.

Two lists are narrower on purpose. The target of the loss in a batch (`subject_from_call`) must not be guessed
from a rare name: the wrong one would be trained on. Transforms of targets (`dataset_stages`) are found by
words inside the name of an attribute.
"""

from __future__ import annotations

# Fields of a sample that are its label.
LABEL_NAMES = frozenset({
    "label", "labels", "target", "targets", "y", "class", "cls", "category", "answer", "label_ids",
    "class_id", "fine_label", "coarse_label", "output", "gt",
})  # fmt: skip

# Words in the names of validation and test data, and of what is measured on them.
HELD_OUT = ("val", "valid", "validation", "test", "eval", "dev", "holdout")


def says_held_out(name: str) -> bool:
    """Whether a name contains one of these words."""
    return any(word in name.lower() for word in HELD_OUT)
