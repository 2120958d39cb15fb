"""Judges the record of one stdio session: the promises that hold whatever was asked."""

import json
import pathlib

LEAVE_WITHIN = 2.0  # seconds between the end of stdin and the end of the process


def typed(identity) -> str:
    """JSON text of an id or token: 1 and "1" are two ids."""
    return json.dumps(identity)


class Session:
    def __init__(self, path: pathlib.Path):
        self.faults: list[str] = []
        self.leaving: list[str] = []
        self.open: dict[str, dict] = {}  # the client's requests without an answer
        self.cancelled: set[str] = set()
        self.asked: set[str] = set()  # our requests to the client without an answer
        self.calls: list[dict] = []  # every tools/call with a progress token, and the reports it got
        self.legacy = False
        self.ended = self.signalled = self.exited = None
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if "inward" in entry:
                self.inward(entry["inward"])
            elif "outward" in entry:
                self.outward(entry["outward"])
            elif "end" in entry:
                self.ended = entry["at"]
            elif "signal" in entry:
                self.signalled = entry["at"]
            elif "exit" in entry:
                self.exited = entry["at"]
                self.left(entry["exit"])
        if self.exited is None:
            self.leaving.append("was killed: it did not leave by itself")
        errors = path.with_suffix(".err").read_text(encoding="utf-8", errors="replace")
        if "panicked" in errors:
            self.faults.append("panicked: " + errors.strip().splitlines()[-1])

    def fault(self, text: str, line: str = "") -> None:
        self.faults.append(f"{text} {line.strip()[:200]}".strip())

    def inward(self, line: str) -> None:
        message = json.loads(line)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            self.legacy = True
        if method == "notifications/cancelled":
            self.cancelled.add(typed(message["params"]["requestId"]))
        elif method and "id" in message:
            params = message.get("params") or {}
            request = {"token": params.get("_meta", {}).get("progressToken"), "method": method, "reports": []}
            self.open[typed(identity)] = request
            if method == "tools/call" and request["token"] is not None:
                self.calls.append({"tool": params["name"], "reports": request["reports"]})
        elif "id" in message and typed(identity) in self.asked:
            self.asked.discard(typed(identity))

    def outward(self, line: str) -> None:
        if not line.endswith("\n"):
            self.fault("a line without an end:", line)
        try:
            message = json.loads(line)
        except ValueError:
            return self.fault("not JSON on stdout:", line)
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return self.fault("not a JSON-RPC message on stdout:", line)
        method = message.get("method")
        if method and "id" in message:
            if not self.legacy:
                self.fault("a request towards a 2026 client:", line)
            if typed(message["id"]) in self.asked:
                self.fault("an id used twice at the same time:", line)
            self.asked.add(typed(message["id"]))
        elif method == "notifications/progress":
            self.progressed(message["params"], line)
        elif not method:
            self.answered(message, line)

    def progressed(self, params: dict, line: str) -> None:
        token = typed(params.get("progressToken"))
        reports = next((r["reports"] for r in self.open.values() if typed(r["token"]) == token), None)
        if reports is None:
            return self.fault("progress for a call that is not running:", line)
        if reports and params["progress"] <= reports[-1]["progress"]:
            self.fault("progress that does not increase:", line)
        reports.append({key: value for key, value in params.items() if key not in ("progressToken", "_meta")})

    def answered(self, message: dict, line: str) -> None:
        identity = typed(message.get("id"))
        request = self.open.pop(identity, None)
        if request is None:
            return self.fault("an answer nobody waits for:", line)
        if identity in self.cancelled:
            self.fault("an answer to a cancelled request:", line)
        result = message.get("result")
        if ("error" in message) == ("result" in message):
            self.fault("neither one result nor one error:", line)
        if isinstance(result, dict) and request["method"] != "initialize":
            if self.legacy and {"resultType", "ttlMs", "cacheScope"} & result.keys():
                self.fault("members of 2026 in a result for a 2025 client:", line)
            if not self.legacy and "resultType" not in result:
                self.fault("no resultType in a result for a 2026 client:", line)

    def left(self, code: int) -> None:
        unanswered = [request["method"] for identity, request in self.open.items() if identity not in self.cancelled]
        unanswered = [method for method in unanswered if method != "subscriptions/listen"]
        if unanswered and self.signalled is None:
            self.fault("left without an answer to: " + ", ".join(unanswered))
        told = [at for at in (self.ended, self.signalled) if at is not None]
        if not told:
            self.leaving.append(f"ended with {code} while the client was there")
            return
        took = self.exited - min(told)
        if took > LEAVE_WITHIN:
            self.leaving.append(f"took {took:.1f} s to leave")
        if code != 0 and self.signalled is None:
            self.leaving.append(f"ended with {code}")


def sessions(folder: pathlib.Path) -> list[Session]:
    return [Session(path) for path in sorted(folder.glob("*.jsonl"))]


def judge(recorded: list[Session]) -> dict[str, list[str]]:
    """The faults on the wire and at the end, over every start that was recorded."""
    if not recorded:
        return {"the wire": ["nothing was recorded"]}
    return {
        "the wire": [fault for session in recorded for fault in session.faults],
        "leaving": [fault for session in recorded for fault in session.leaving],
    }
