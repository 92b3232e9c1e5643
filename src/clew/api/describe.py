"""`clew.describe` and `clew.describe_tensors`: what a person wants to know of a tensor."""

from clew.labs.network.tensor_description import describe as describe
from clew.labs.network.tensor_description import describe_tensors as describe_tensors
