"""Groups of faults that have the same consequences.

A check joins a group by naming it (`Check.groups`), and then counts as a cause of every check that names
the group in `caused_by`: neither has to know the other.
"""

from __future__ import annotations

from collections.abc import Mapping

GROUPS: Mapping[str, str] = {
    "loop-faults": "a call of the training loop is missing or in the wrong place",
    "wiring-faults": "parameters that the loss, the optimizer or the model does not reach",
    "loss-faults": "a loss that does not fit what the model returns",
    "scale-faults": "numbers that come in too large, too small or changed",
    "data-faults": "batches from which little can be learned",
    "rate-faults": "a learning rate or a schedule that does not fit",
    "step-size-faults": "each update goes too far",
    "layer-faults": "layers that pass on too little, or something else than was meant",
    "network-faults": "the network computes something else than was meant; only an experiment shows it",
    "loading-faults": "each sample takes longer to load than it must",
    "learning-faults": "whatever keeps a network from learning",
}
# Groups that are made of others, and of the checks that name them.
WIDER: Mapping[str, tuple[str, ...]] = {
    "learning-faults": (
        "loop-faults",
        "wiring-faults",
        "loss-faults",
        "scale-faults",
        "data-faults",
        "rate-faults",
        "layer-faults",
        "network-faults",
    ),
}
