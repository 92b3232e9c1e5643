"""For these tests: which steps are sampled does not depend on how busy the machine is."""

from steady_budget import steady_budget

__all__ = ["steady_budget"]
