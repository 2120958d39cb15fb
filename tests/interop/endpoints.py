"""Starts the endpoints, each on a free port of the loopback address."""

import os
import pathlib
import socket
import subprocess
import time

from install import CACHE, HERE, PYTHON

EVERYTHING = CACHE / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
KIT = HERE / "kit"

# `era` is what the proxy will find, `plan` what the clients do there, `options` what the program is given besides,
# `clients` which of them come here, all when it is missing.
SERVERS = {
    "everything": {
        "title": "server-everything 2026.8.31 (2025)",
        "era": "2025",
        "plan": "everything",
        "command": lambda port: ["node", EVERYTHING, "streamableHttp"],
    },
    "everything-closed": {
        "title": "server-everything 2026.8.31 (2025), a client that could sample",
        "era": "2025",
        "plan": "closed",
        "command": lambda port: ["node", EVERYTHING, "streamableHttp"],
    },
    "everything-open": {
        "title": "server-everything 2026.8.31 (2025), sampling and roots allowed",
        "era": "2025",
        "plan": "open",
        "options": "--allow-sampling --allow-roots",
        "command": lambda port: ["node", EVERYTHING, "streamableHttp"],
    },
    "ts": {
        "title": "TypeScript server 2.4.0 (2026)",
        "era": "2026",
        "plan": "kit",
        "command": lambda port: ["node", KIT / "server.mjs", "--port", port, "--era", "both"],
    },
    "ts-2025": {
        "title": "TypeScript server 2.4.0 (2025)",
        "era": "2025",
        "plan": "kit",
        "command": lambda port: ["node", KIT / "server.mjs", "--port", port, "--era", "legacy"],
    },
    "ts-stateless": {
        "title": "TypeScript server 2.4.0 (2025, stateless)",
        "era": "2025",
        "plan": "kit",
        "clients": ["ts-2026", "py-2025", "rs-2026"],
        "command": lambda port: ["node", KIT / "server.mjs", "--port", port, "--era", "stateless"],
    },
    "py": {
        "title": "Python mcp 2.3.0 (2026)",
        "era": "2026",
        "plan": "kit",
        "command": lambda port: [PYTHON, KIT / "server.py", "--port", port, "--era", "both"],
    },
    "py-stateless": {
        "title": "Python mcp 2.3.0 (2025, stateless)",
        "era": "2025",
        "plan": "kit",
        "clients": ["ts-2025", "py-2026", "rs-2025"],
        "command": lambda port: [PYTHON, KIT / "server.py", "--port", port, "--era", "stateless"],
    },
    "py-2025": {
        "title": "Python mcp 2.3.0 (2025)",
        "era": "2025",
        "plan": "kit",
        "command": lambda port: [PYTHON, KIT / "server.py", "--port", port, "--era", "legacy"],
    },
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Endpoint:
    """A running endpoint; leaves with the `with` block."""

    def __init__(self, name: str, logs: pathlib.Path):
        self.name, self.log = name, logs / f"{name}.log"

    def __enter__(self) -> "Endpoint":
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/mcp"
        command = [str(part) for part in SERVERS[self.name]["command"](port)]
        with open(self.log, "wb") as log:
            environment = {**os.environ, "PORT": str(port)}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended at once: {self.log.read_text(errors='replace')[-500:]}")
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                return self
            except OSError:
                time.sleep(0.05)
        self.__exit__()
        raise RuntimeError(f"{self.name} does not listen")

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
