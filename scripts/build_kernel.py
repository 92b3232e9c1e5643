"""Compile the statistics kernel, if there is a C compiler.

With a compiler, the wheel contains the library and has the tag of this platform. Without one the build still
succeeds: a pure wheel, which computes statistics with torch ops. In an editable install the library is put
beside its sources (git-ignored). Used by the build hook; can also be run directly: `python
scripts/build_kernel.py`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

FOLDER = "src/clew/measure/kernel"
SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")

REQUIRED = ["-O3", "-shared", "-fPIC", "-fvisibility=hidden"]
# These only make the loops faster (none lets the compiler assume that there is no NaN). A flag that the
# compiler does not know is dropped.
OPTIONAL = ["-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
# Without the loops for AVX2 and AVX-512, for a compiler that cannot query the processor.
PLAIN = ["-DCLEW_PLAIN"]


def compilers() -> list[list[str]]:
    """Commands to try, the user's own choice first."""
    named = [os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    commands = [shlex.split(name) for name in named if name]
    return [command for command in commands if shutil.which(command[0])]


def compile_kernel(root: Path) -> Path | None:
    """Build the library beside its sources; None if no compiler works."""
    sources, target = sorted((root / FOLDER).glob("*.c")), root / FOLDER / f"_kernel{SUFFIX}"
    for compiler in compilers():
        for flags in (REQUIRED + OPTIONAL, REQUIRED, REQUIRED + PLAIN):
            if _compile(compiler, flags, sources, target):
                return target
    return None


def _compile(compiler: list[str], flags: list[str], sources: list[Path], target: Path) -> bool:
    libraries = [] if sys.platform == "win32" else ["-lm"]
    # Written to a temporary file and renamed: a process that has the old library open keeps it intact.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        made = Path(folder) / target.name
        command = [*compiler, *flags, "-o", str(made), *map(str, sources), *libraries]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            return False
        os.replace(made, target)
    return True


def platform_tag() -> str:
    """The wheel's platform tag: the library needs only libc and libm."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


if __name__ == "__main__":
    built = compile_kernel(Path(__file__).resolve().parent.parent)
    print(built or "No C compiler found: statistics will come from torch ops.")
