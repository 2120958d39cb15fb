#!/usr/bin/env python3
"""Runs the sign-in scenarios of the official conformance suite against the program.

    python3 tests/conformance/run.py [--binary FILE] [--table FILE] [--scenario NAME]… [--spec-version REVISION]…

Needs python3 and npm; installs the pinned suite and a Node under .cache/conformance at the first run. Ends with a line
`N passed, N failed` and exits with 1 when a check failed, a warning was given, or a scenario checked nothing.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

from install import HERE, install
from scenarios import OUT, REFUSED, chosen

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target"))
CLIENT_LIMIT = 130  # seconds; client.py gives up before that
SUITE_LIMIT = CLIENT_LIMIT + 20
SEVERITY = ["FAILURE", "WARNING", "SUCCESS", "INFO", "SKIPPED"]  # the worst first
PASSED, FAILED = ("SUCCESS",), ("FAILURE", "WARNING")  # the suite, too, fails a scenario for a warning
LOG = ("incoming-", "outgoing-")  # the suite's log of requests and answers, kept among the checks
OURS = "(ours) "


class Run:
    """One scenario at one revision: its checks, an id each, with the worst status that the id was given."""

    def __init__(self, scenario: str, revision: str):
        self.scenario = scenario
        self.revision = revision
        self.checks: dict[str, dict] = {}
        self.output = ""

    def add(self, name: str, status: str, text: str) -> None:
        known = self.checks.get(name)
        if known is None or SEVERITY.index(status) < SEVERITY.index(known["status"]):
            self.checks[name] = {"status": status, "text": text}

    def count(self, statuses: tuple) -> int:
        return sum(check["status"] in statuses for check in self.checks.values())

    def perform(self, suite: list[str], command: str, environment: dict, folder: pathlib.Path) -> None:
        arguments = ["client", "--command", command, "--scenario", self.scenario, "--spec-version", self.revision]
        arguments += ["--timeout", str(CLIENT_LIMIT * 1000), "--output-dir", str(folder)]
        try:
            done = subprocess.run(
                [*suite, *arguments], capture_output=True, encoding="utf-8", timeout=SUITE_LIMIT, env=environment
            )
            code, self.output = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            code = None
        self.judge(code, folder)
        self.output += "\n".join(read(folder, name) for name in ("stderr.txt", "stdout.txt"))

    def judge(self, code: int | None, folder: pathlib.Path) -> None:
        for check in json.loads(read(folder, "checks.json") or "[]"):
            if not check["id"].startswith(LOG):
                self.add(check["id"], check["status"], check.get("errorMessage") or check["description"])
        if not self.count(PASSED + FAILED):
            self.add(f"{OURS}checked", "FAILURE", "no check ran")
        self.judge_end(read(folder, "stdout.txt").strip().splitlines())
        if code is None:
            self.add(f"{OURS}verdict", "FAILURE", f"no end after {SUITE_LIMIT} s")
        elif code != 0 and not self.count(FAILED):
            self.add(f"{OURS}verdict", "FAILURE", f"the suite ended with {code}")

    def judge_end(self, said: list[str]) -> None:
        """What the suite cannot see: a sign-in that was refused for no reason, or no answer at all."""
        due = "refused" if self.scenario in REFUSED else "served"
        try:
            end = json.loads(said[-1])
            status = "SUCCESS" if end["ended"] == due else "FAILURE"
            self.add(f"{OURS}{due}", status, f"{end['ended']}: {end['why']}")
        except (IndexError, ValueError, KeyError, TypeError):
            self.add(f"{OURS}{due}", "FAILURE", "the client did not say how it ended")

    def text(self) -> str:
        wide = max(map(len, self.checks))
        lines = [f"{self.scenario} at {self.revision}"]
        for name, check in self.checks.items():
            lines.append(f"    {check['status']:<8} {name:<{wide}}  {check['text']}")
        return "\n".join(lines)


def read(folder: pathlib.Path, name: str) -> str:
    found = next(folder.rglob(name), None)
    return found.read_text(encoding="utf-8", errors="replace") if found else ""


def markdown(runs: list[Run]) -> str:
    """A section per scenario, a row per check, a column per revision."""
    out = []
    for scenario in dict.fromkeys(run.scenario for run in runs):
        mine = [run for run in runs if run.scenario == scenario]
        revisions = " | ".join(run.revision for run in mine)
        out += [f"### {scenario}", "", f"| | {revisions} |", "|---|" + ":-:|" * len(mine)]
        notes = []
        for name in dict.fromkeys(name for run in mine for name in run.checks):
            cells = []
            for run in mine:
                check = run.checks.get(name, {"status": "–"})
                status = check["status"]
                cells.append("ok" if status in PASSED else f"**{status}**" if status in FAILED else status.lower())
                if status in FAILED:
                    notes.append(f"- {run.revision}, {name}: {check['text']}")
            out.append(f"| {name} | {' | '.join(cells)} |")
        out += ["", *notes, *([""] if notes else [])]
    out += ["### Not run", "", "| | |", "|---|---|", *(f"| {name} | {why} |" for name, why in OUT.items()), ""]
    return "\n".join(out)


def surroundings(program: str) -> dict:
    """The environment without the settings of whoever runs this: the program is told everything by flags."""
    own = ("MCP_HASP_", "MCP_CONFORMANCE_", "PLAYERTHREE_")
    proxies = ("http_proxy", "https_proxy", "all_proxy")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(own) and k.lower() not in proxies}
    return {**kept, "MCP_HASP_UNDER_TEST": program, "PYTHONUTF8": "1"}


def client_command() -> str:
    """For the suite, which hands it to a shell."""
    return shlex.join([sys.executable, str(HERE / "client.py")])


def default_binary() -> str:
    return str(TARGET / "release" / ("mcp-hasp.exe" if sys.platform == "win32" else "mcp-hasp"))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=default_binary(), help="the program; the release build by default")
    options.add_argument("--table", type=pathlib.Path, help="write the result as markdown to this file")
    options.add_argument("--scenario", action="append", help="only this one, with all that was said; repeatable")
    options.add_argument("--spec-version", action="append", help="only this revision; repeatable")
    options.add_argument("--jobs", type=int, default=4, help="scenarios that run at the same time")
    options.add_argument("--program", help="run another command line in place of the program, to check the tests")
    asked = options.parse_args()
    if not asked.program and not pathlib.Path(asked.binary).exists():
        print(f"there is no {asked.binary}; build it first: cargo build --release", file=sys.stderr)
        return 1
    program = asked.program or shlex.join([str(pathlib.Path(asked.binary).resolve())])
    suite = install()
    environment = surroundings(program)
    listing = subprocess.run([*suite, "list", "--client"], check=True, capture_output=True, encoding="utf-8").stdout
    pairs, unknown = chosen(listing)
    runs = [
        Run(scenario, revision)
        for scenario, revision in pairs
        if scenario in (asked.scenario or [scenario]) and revision in (asked.spec_version or [revision])
    ]
    if not runs:
        print(f"nothing to run; there are: {', '.join(dict.fromkeys(name for name, _ in pairs))}", file=sys.stderr)
        return 1
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            folders = [pathlib.Path(scratch) / str(number) for number in range(len(runs))]
            started = [
                pool.submit(run.perform, suite, client_command(), environment, folder)
                for run, folder in zip(runs, folders)
            ]
            for run, end in zip(runs, started):
                end.result()
                if asked.scenario:
                    print(run.output)
                print(run.text(), flush=True)
    if not asked.scenario:
        print("\nnot run:")
        for name, why in OUT.items():
            print(f"    {name}: {why}")
    for name in unknown:
        print(f"    {name}: unknown here; scenarios.py has to say whether it is ours")
    if asked.table:
        asked.table.write_text(markdown(runs), encoding="utf-8")
    passed, failed = (sum(run.count(kind) for run in runs) for kind in (PASSED, FAILED))
    failed += len(unknown)
    print(f"\n{len(runs)} runs in {time.monotonic() - begun:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
