"""Names of operations: torch's internal names mapped to the ones that users write."""

from __future__ import annotations

import re
from typing import Any

_PLAIN = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_to_copy": "cast",
    "addmm": "linear",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "addmv": "linear",
    "baddbmm": "matmul",
    "native_batch_norm": "batch_norm",
    "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_functional": "batch_norm",
    "_batch_norm_with_update": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "linalg_vector_norm": "norm",
    "convolution": "conv",
    "mkldnn_convolution": "conv",
    "nll_loss_forward": "nll_loss",
    "nll_loss2d_forward": "nll_loss",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "rsub": "sub",
    "_safe_softmax": "softmax",
}


def plain_name(name: str) -> str:
    """`_log_softmax` under the name people know."""
    name = _PLAIN.get(name, name)
    return _PLAIN.get(name.rstrip("_"), name.rstrip("_") if not name.endswith("__") else name)


def op_name(function: Any) -> str:
    """The name of an ATen overload."""
    return plain_name(str(function._schema.name).partition("::")[2])


def node_name(node: Any) -> str:
    """`SqrtBackward0` is the gradient of `sqrt`; a custom Function keeps its class name."""
    name = str(node.name())
    name = name.removeprefix("torch::autograd::")
    stem = re.sub(r"Backward\d*$", "", name)
    if is_custom(node):
        return stem
    return plain_name(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower())


def is_custom(node: Any) -> bool:
    """Whether a node belongs to a `torch.autograd.Function` written in Python."""
    return hasattr(type(node), "_forward_cls")
