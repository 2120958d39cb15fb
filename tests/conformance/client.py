#!/usr/bin/env python3
"""The client that the suite starts: a harness with mcp-hasp in it, and the person in front of it.

    client.py <endpoint URL>

The suite names the scenario in MCP_CONFORMANCE_SCENARIO, the revision in MCP_CONFORMANCE_PROTOCOL_VERSION, credentials
in MCP_CONFORMANCE_CONTEXT; run.py names the program in MCP_HASP_UNDER_TEST. The last line on stdout says how it ended:
{"ended": "served"}, "refused" (an error that a harness can show) or "broken" (nothing that the program may do).
"""

import contextlib
import json
import os
import pathlib
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
MODERN = VERSION >= "2026-07-28"
PROGRAM = shlex.split(os.environ["MCP_HASP_UNDER_TEST"])

FIRST_ANSWER = 25  # seconds; the program promises 20 for the first message
ANSWER = 30
SIGNS_IN_WITHIN = 30
LEAVES_WITHIN = 5
LIMIT = 120  # for all of it
LOGINS = 2  # how often a person follows the advice to sign in (again): with the first sign-in the three of the suite
SIGN_IN_ERRORS = ("sign_in_required", "insufficient_scope")
ORDERLY = (69, 77)  # exit codes of a start or a --login that was refused
# The suite is the authorization server: what it gives out is known here, and must not be on stderr.
SECRETS = (
    "as1-client-secret",
    "pre-registered-secret",
    "test-auth-code",
    "test-client-secret",
    "test-secret-",
    "test-token-",
)
# What a person would have to be told by the provider, and the suite tells nobody.
FLAGS = {"auth/basic-cimd": ["--client-metadata-url", "https://conformance-test.local/client-metadata.json"]}

begun = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - begun:6.2f}] {text}", file=sys.stderr, flush=True)


class Refused(Exception):
    """The program said no, in a way that it may."""


class Ended(Refused):
    """Its start failed, and it left."""


class Broken(Exception):
    """The program did what it never may."""


class Person:
    """Opens each sign-in link once and says yes: the suite's authorization page sends straight back."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    def __init__(self):
        self.browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), self.Stay)
        self.seen: set[str] = set()
        self.lock = threading.Lock()

    def read(self, line: str) -> bool:
        """Whether there is a link in the line."""
        links = [word.strip("<>()[]\"',") for word in line.split()]
        links = [link for link in links if link.startswith("http") and "code_challenge=" in link]
        for link in links:
            with self.lock:
                new = link not in self.seen
                self.seen.add(link)
            if new:
                threading.Thread(target=self.visit, args=[link], daemon=True).start()
        return bool(links)

    def visit(self, link: str) -> None:
        say(f"person: opens {link.split('?')[0]}")
        try:
            status, back = self.get(link)
            if back is None:
                say(f"person: the sign-in page answered {status} and leads nowhere")
                return
            say(f"person: sent back to {back.split('?')[0]}")
            say(f"person: the program's page answered {self.get(back)[0]}")
        except OSError as why:
            say(f"person: {why}")

    def get(self, url: str) -> tuple[int, str | None]:
        try:
            with self.browser.open(url, timeout=SIGNS_IN_WITHIN) as page:
                page.read()
                return page.status, None
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.headers["Location"]


class Program:
    """mcp-hasp, whose stderr is read by the person."""

    started: list["Program"] = []

    def __init__(self, flags: list[str], person: Person):
        self.person = person
        self.process = subprocess.Popen(
            [*PROGRAM, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.out: queue.Queue = queue.Queue()
        self.errors: list[str] = []
        self.offered = False  # a sign-in
        self.started.append(self)
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self.read_out, self.read_errors)]
        for reader in self.readers:
            reader.start()

    def read_out(self) -> None:
        for line in self.process.stdout:
            self.out.put(line)
        self.out.put(None)

    def read_errors(self) -> None:
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace").rstrip()
            say(f"stderr: {line}")
            self.errors.append(line)
            self.offered |= self.person.read(line)

    def leave(self, within: float) -> int:
        """Lets it end by itself and returns its code."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Broken(f"still there {within} s after its stdin ended") from None
        for reader in self.readers:
            reader.join(2)
        said = "\n".join(self.errors)
        if "panicked" in said:
            raise Broken("it panicked")
        for secret in SECRETS:
            if secret in said:
                raise Broken(f"a secret on stderr: {secret}…")
        return code


class Harness:
    """Speaks MCP with a running proxy; one request at a time."""

    def __init__(self, proxy: Program):
        self.proxy = proxy
        self.last = -1
        self.first = True
        self.opened = False

    def send(self, message: dict) -> None:
        try:
            self.proxy.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.proxy.process.stdin.flush()
        except OSError:
            pass  # the reader sees the end of stdout, and says why

    def ask(self, method: str, params: dict) -> dict:
        """The whole answer, be it a result or an error."""
        if MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": VERSION,
                "io.modelcontextprotocol/clientInfo": {"name": "conformance-harness", "version": "1.0.0"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {**params, "_meta": meta}
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        until = time.monotonic() + (FIRST_ANSWER if self.first else ANSWER)
        while True:
            try:
                line = self.proxy.out.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise Broken(f"no answer to {method}") from None
            if line is None:
                raise self.gone(method)
            try:
                message = json.loads(line)
            except ValueError:
                raise Broken(f"stdout is not MCP: {line[:200]!r}") from None
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "error": {"code": -32601, "message": "not offered"}})
            elif "method" not in message and message.get("id") == self.last:
                self.first = False
                say(f"harness: {method} → {json.dumps(message.get('error', 'a result'))}")
                return message

    def gone(self, method: str) -> Exception:
        code = self.proxy.leave(LEAVES_WITHIN)
        if code in ORDERLY and any(self.proxy.errors) and not self.opened:
            return Ended(f"ended with {code}")
        return Broken(f"ended with {code} instead of answering {method}")

    def open(self) -> dict:
        who = {"name": "conformance-harness", "version": "1.0.0"}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": who}
        answer = self.ask("server/discover", {}) if MODERN else self.ask("initialize", hello)
        self.opened = "result" in answer
        if self.opened and not MODERN:
            self.send({"method": "notifications/initialized"})
        return answer


def login(flags: list[str], person: Person) -> None:
    """What the error advises: sign in by hand, beside the running proxy."""
    say("person: runs --login")
    code = Program([*flags, "--login"], person).leave(SIGNS_IN_WITHIN)
    say(f"person: --login ended with {code}")
    if code in ORDERLY:
        raise Refused(f"--login ended with {code}")
    if code != 0:
        raise Broken(f"--login ended with {code}")


class Session:
    """What a harness does with the program, and what its user does about errors."""

    def __init__(self, flags: list[str]):
        self.flags = flags
        self.person = Person()
        self.logins = 0
        self.restarts = 0
        self.start()

    def start(self) -> None:
        self.proxy = Program(self.flags, self.person)
        self.harness = Harness(self.proxy)

    def insist(self, step) -> dict:
        """Repeats a step as long as signing in may help."""
        while True:
            try:
                answer = step(self.harness)
            except Ended:
                # A start that failed for want of a sign-in may end the program; the harness starts it again.
                if not self.logins or self.restarts:
                    raise
                self.restarts += 1
                self.start()
                continue
            if "error" not in answer:
                return answer["result"]
            self.follow(answer["error"])

    def follow(self, error: dict) -> None:
        reason = (error.get("data") or {}).get("reason")
        if reason not in SIGN_IN_ERRORS or self.logins == LOGINS:
            raise Refused(f"{reason or error['code']}: {error['message']}")
        if "--login" not in error["message"]:
            raise Broken(f"an error that does not say what to do: {error['message']}")
        self.logins += 1
        login(self.flags, self.person)
        if not self.proxy.offered and not self.restarts:
            raise Broken("--login can sign in, and the proxy never offered to")

    def play(self) -> str:
        try:
            self.insist(Harness.open)
            tools = self.insist(lambda harness: harness.ask("tools/list", {}))["tools"]
            call = {"name": tools[0]["name"], "arguments": {}}
            result = self.insist(lambda harness: harness.ask("tools/call", call))
            if result.get("isError") or not result.get("content"):
                raise Broken(f"the tool answered {json.dumps(result)}")
        finally:
            code = self.proxy.leave(LEAVES_WITHIN)
            say(f"harness: left, and it ended with {code}")
            if code not in (0, *ORDERLY):
                raise Broken(f"ended with {code}")
        if code != 0:
            raise Broken(f"ended with {code} after it had served")
        return f"the tool call was answered, after {self.logins} --login and {self.restarts} restarts"


def give_up() -> None:
    for program in Program.started:
        program.process.kill()
    print(json.dumps({"ended": "broken", "why": f"no end after {LIMIT} s"}), flush=True)
    os._exit(2)


def main() -> int:
    clock = threading.Timer(LIMIT, give_up)
    clock.daemon = True
    clock.start()
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory(prefix="conformance-client-") as scratch:
        home = pathlib.Path(scratch)
        flags = ["--url", sys.argv[1], "--no-browser", "--config-dir", str(home / "config"), *FLAGS.get(SCENARIO, [])]
        for name, flag in (("client_id", "--client-id"), ("issuer", "--issuer"), ("scope", "--scope")):
            if name in context:
                flags += [flag, context[name]]
        if "client_secret" in context:
            secret = home / "secret"
            secret.touch(mode=0o600)
            secret.write_text(context["client_secret"])
            flags += ["--client-secret-file", str(secret)]
        try:
            end = {"ended": "served", "why": Session(flags).play()}
        except Refused as why:
            end = {"ended": "refused", "why": str(why)}
        except Broken as why:
            end = {"ended": "broken", "why": str(why)}
    say(f"{end}")
    print(json.dumps(end), flush=True)
    return {"served": 0, "refused": 1, "broken": 2}[end["ended"]]


if __name__ == "__main__":
    sys.exit(main())
