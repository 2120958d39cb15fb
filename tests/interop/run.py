#!/usr/bin/env python3
"""Drives the program with real clients against real endpoints, and compares with the same clients going straight.

    python3 tests/interop/run.py [--binary FILE] [--table FILE] [--client NAME]… [--server NAME]… [--keep DIR]

Needs python3, node and npm; installs the pinned SDKs under .cache/interop at the first run. Ends with a line
`N passed, N failed` and exits with 1 when something failed.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

import compare
import table
import wire
from endpoints import SERVERS, Endpoint
from install import HERE, PYTHON, RUST, TARGET, install

# `reference`: how the same client goes straight to an endpoint of 2025, when its own way would not get there.
CLIENTS = {
    "ts-2025": {"title": "TypeScript client 2.4.0, 2025", "era": "legacy", "speaks": "2025-11-25"},
    "ts-2026": {"title": "TypeScript client 2.4.0, 2026", "era": "auto", "speaks": "2026-07-28"},
    "py-2025": {"title": "Python client 2.3.0, 2025", "era": "legacy", "speaks": "2025-11-25"},
    "py-2026": {"title": "Python client 2.3.0, 2026", "era": "auto", "speaks": "2026-07-28"},
    "py-bare": {
        "title": "Python client 2.3.0, 2026 without discover",
        "era": "2026-07-28",
        "speaks": "2026-07-28",
        "reference": "auto",
        "silent": True,
    },
    "rs-2025": {"title": "rmcp client 3.11, 2025", "era": "legacy", "speaks": "2025-11-25"},
    "rs-2026": {"title": "rmcp client 3.11, 2026", "era": "auto", "speaks": "2026-07-28"},
}
SCRIPTS = {"ts": ["node", HERE / "clients/client.mjs"], "py": [PYTHON, HERE / "clients/client.py"], "rs": [RUST]}
PATIENCE = 90  # seconds for one client to walk one plan


def walk(client: str, era: str, plan: pathlib.Path, target: list[str]) -> dict:
    command = [*map(str, SCRIPTS[client[:2]]), "--era", era, "--plan", str(plan), *target]
    try:
        # Nobody's own sign-ins and pins: the program looks in a folder of this run.
        environment = {**os.environ, "MCP_HASP_CONFIG_DIR": str(plan.parent / "config")}
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, encoding="utf-8", env=environment)
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"failed": f"no end after {PATIENCE} s", "steps": {}}
    except ValueError:
        return {"failed": f"no report: {done.stderr[-300:]}", "steps": {}}


def fresh_plan(name: str, folder: pathlib.Path) -> pathlib.Path:
    """A copy whose keys no other run has used."""
    path = folder / "plan.json"
    text = (HERE / "plans" / f"{name}.json").read_text(encoding="utf-8")
    path.write_text(text.replace("RUN", str(uuid.uuid4())), encoding="utf-8")
    return path


def pair(client: str, endpoint: Endpoint, proxy: str, keep: pathlib.Path) -> dict:
    """The verdict on every feature for one client at one endpoint."""
    about, server = CLIENTS[client], SERVERS[endpoint.name]
    folder = keep / f"{endpoint.name}+{client}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "wire").mkdir(parents=True)
    straight = about.get("reference", about["era"]) if server["era"] == "2025" else about["era"]
    direct = walk(client, straight, fresh_plan(server["plan"], folder), ["--url", endpoint.url])
    plan = fresh_plan(server["plan"], folder)
    command = shlex.split(proxy.format(url=endpoint.url, options=server.get("options", "")))
    tapped = [sys.executable, str(HERE / "tap.py"), str(folder / "wire"), "--", *command]
    through = walk(client, about["era"], plan, ["--", *tapped])
    for name, report in (("direct", direct), ("through", through)):
        (folder / f"{name}.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    return judge(about, server, json.loads(plan.read_text(encoding="utf-8")), direct, through, folder / "wire")


def judge(about: dict, server: dict, plan: dict, direct: dict, through: dict, record: pathlib.Path) -> dict:
    verdicts = {}
    if "failed" in direct:
        return {"reference": f"the client failed without the proxy: {direct['failed'][-400:]}"}
    spoke = through.get("version")
    failed = through.get("failed", "").strip().splitlines()
    verdicts["connect"] = failed[-1] if failed else None if spoke == about["speaks"] else f"speaks {spoke}"
    eras = (about["speaks"][:4], server["era"])
    sessions = wire.sessions(record)
    put_back_progress(plan, through, sessions)
    for step in plan["steps"]:
        reference, outcome = direct["steps"].get(step["name"]), through["steps"].get(step["name"])
        if step["do"] == "hello" and about.get("silent"):
            verdicts[step["name"]] = "–"
        elif step.get("clients", eras[0]) != eras[0]:
            verdicts[step["name"]] = "–"
        elif step["do"] == "unsolicitedLog" and outcome and "skipped" in outcome.get("result", {}):
            verdicts[step["name"]] = "–"
        else:
            verdict = compare.compare(step, reference, outcome, eras, plan)
            verdicts[step["name"]] = "refused" if verdict is None and "error" in reference else verdict
    for feature, faults in wire.judge(sessions).items():
        verdicts[feature] = "; ".join(faults[:3]) or None
    return verdicts


def put_back_progress(plan: dict, through: dict, sessions: list[wire.Session]) -> None:
    """Takes the progress of a step from the recording.

    The TypeScript client answers a call at once but handles notifications a moment later: progress that it reads
    together with the result is lost inside the client. What counts here is what the proxy wrote, and in which order.
    """
    calls = [call for session in sessions for call in session.calls if call["reports"]]
    for step in plan["steps"]:
        if step.get("progress") and step["name"] in through["steps"]:
            call = next((call for call in calls if call["tool"] == step["tool"]), {"reports": []})
            if call["reports"]:
                calls.remove(call)
            entry = through["steps"][step["name"]]
            others = [event for event in entry["events"] if "progress" not in event]
            entry["events"] = [*({"progress": report} for report in call["reports"]), *others]
            entry.pop("late", None)


def tell(server: str, client: str, found: dict) -> None:
    wrong = {feature: verdict for feature, verdict in found.items() if verdict not in table.GOOD}
    good = sum(verdict in table.PASSED for verdict in found.values())
    print(f"{SERVERS[server]['title']} × {CLIENTS[client]['title']}: {good} ok, {len(wrong)} failed", flush=True)
    for feature, verdict in wrong.items():
        print(f"    {feature}: {verdict}", flush=True)


def default_binary() -> str:
    return str(TARGET / "release" / ("mcp-hasp.exe" if sys.platform == "win32" else "mcp-hasp"))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--binary", default=default_binary(), help="the program; the release build by default")
    options.add_argument("--table", type=pathlib.Path, help="write the result as markdown to this file")
    options.add_argument("--client", action="append", choices=CLIENTS, help="only this client; repeatable")
    options.add_argument("--server", action="append", choices=SERVERS, help="only this endpoint; repeatable")
    options.add_argument("--keep", type=pathlib.Path, help="keep reports and recordings in this folder")
    options.add_argument("--jobs", type=int, default=4, help="pairs that run at the same time")
    options.add_argument("--proxy", help="drive another stdio proxy, to check the tests; {url} stands for the endpoint")
    chosen = options.parse_args()
    proxy = chosen.proxy or shlex.quote(chosen.binary) + " --url {url} {options}"
    if not chosen.proxy and not pathlib.Path(chosen.binary).exists():
        print(f"there is no {chosen.binary}; build it first: cargo build --release", file=sys.stderr)
        return 1
    servers = [name for name in SERVERS if not chosen.server or name in chosen.server]
    clients = [name for name in CLIENTS if not chosen.client or name in chosen.client]
    install(with_rust=any(client.startswith("rs") for client in clients))
    begun = time.monotonic()
    verdicts = {}
    with tempfile.TemporaryDirectory(prefix="interop-") as scratch:
        keep = (chosen.keep or pathlib.Path(scratch)).resolve()
        keep.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as open_endpoints, concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
            endpoints = [open_endpoints.enter_context(Endpoint(server, keep)) for server in servers]
            runs = {
                (endpoint.name, client): pool.submit(pair, client, endpoint, proxy, keep)
                for endpoint in endpoints
                for client in clients
                if client in SERVERS[endpoint.name].get("clients", CLIENTS)
            }
            for (server, client), run in runs.items():
                found = run.result()
                verdicts.update({(server, client, feature): verdict for feature, verdict in found.items()})
                tell(server, client, found)
    text = table.markdown(verdicts, SERVERS, CLIENTS)
    if chosen.table:
        chosen.table.write_text(text, encoding="utf-8")
    print("\n" + text)
    counted = [verdict for verdict in verdicts.values() if verdict != "–"]
    passed = sum(verdict in table.PASSED for verdict in counted)
    print(f"in {time.monotonic() - begun:.0f} s")
    print(f"{passed} passed, {len(counted) - passed} failed")
    return 0 if counted and passed == len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
