"""`clew …` and `python -m clew …`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Read the command line, then do what it asks.

    The user's program is started from here, not from within the command-line parser: the
    fewer frames there are below its own, the more it is as under plain `python`.
    """
    from clew.cli.verbs import interpret

    asked = interpret(sys.argv[1:])
    if isinstance(asked, int):
        sys.exit(asked)
    from clew.cli.run import launch

    launch(asked)


if __name__ == "__main__":
    main()
