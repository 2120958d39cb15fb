"""Installs the pinned SDKs under .cache/interop, once; a changed pin installs again."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "interop"
PYTHON = CACHE / "py" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target"))
RUST = TARGET / "debug/examples" / ("interop-client.exe" if sys.platform == "win32" else "interop-client")


def done(mark: pathlib.Path, pins: pathlib.Path) -> bool:
    return mark.exists() and mark.read_text() == pins.read_text()


def node() -> None:
    home, pins = CACHE / "node", HERE / "package.json"
    mark = home / "installed"
    if not done(mark, pins):
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        shutil.copy(pins, home)
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
        subprocess.run(["npm", "install", *quiet], cwd=home, check=True, stdout=sys.stderr)
        mark.write_text(pins.read_text())
    # Node looks for packages beside the importing file and above it, so the scripts need this link.
    link = HERE / "node_modules"
    if not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(home / "node_modules", target_is_directory=True)


def python() -> None:
    home, pins = CACHE / "py", HERE / "requirements.txt"
    mark = home / "installed"
    if not done(mark, pins):
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", pins], check=True, stdout=sys.stderr)
        mark.write_text(pins.read_text())


def rust() -> None:
    """Builds the client on rmcp; its pin is Cargo.lock."""
    subprocess.run(["cargo", "build", "--quiet", "--example", RUST.stem], cwd=HERE, check=True, stdout=sys.stderr)


def install(with_rust: bool = True) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    node()
    python()
    if with_rust:
        rust()


if __name__ == "__main__":
    install()
