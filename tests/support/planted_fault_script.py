"""The script that `clew check` is given to play one fault: FOLDER NAME VARIANT."""

import importlib
import sys
import warnings

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # torch itself warns of some faults
    sys.path.insert(0, sys.argv[1])
    getattr(importlib.import_module(sys.argv[2]), sys.argv[3])()
