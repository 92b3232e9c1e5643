"""`clew.describe` and `clew.describe_tensors`: a tensor in one line, with shape, range and distribution."""

from clew.labs.network.tensor_description import describe as describe
from clew.labs.network.tensor_description import describe_tensors as describe_tensors
