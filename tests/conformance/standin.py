#!/usr/bin/env python3
"""A proxy that knows just enough to be signed in, in place of the program: check.py checks the checks with it.

It takes the program's flags, and `--fault NAME` to do one thing wrong. It keeps its secrets badly: for tests alone.
"""

import argparse
import base64
import hashlib
import http.server
import json
import pathlib
import re
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request

FAULTS = {
    "dies": "ends when it has told of a missing sign-in",
    "idle": "offers no sign-in without --login",
    "iss": "does not look at iss",
    "issuer": "does not look at the issuer in metadata",
    "leak": "shows its token on stderr",
    "pkce": "sends another verifier",
    "resource": "does not look at the resource in metadata",
    "reuse": "shows a client id to another authorization server",
    "scope": "asks for no scope",
    "silent": "does not answer",
    "slash": "writes the resource in its own way",
}


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class No(Exception):
    pass


class Failed(Exception):
    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.answer = {"code": -32603, "message": message, "data": {"reason": reason}}


options = argparse.ArgumentParser()
options.add_argument("--url", required=True)
options.add_argument("--config-dir", type=pathlib.Path, required=True)
options.add_argument("--client-id")
options.add_argument("--client-secret-file", type=pathlib.Path)
options.add_argument("--client-metadata-url")
options.add_argument("--issuer")
options.add_argument("--login", action="store_true")
options.add_argument("--no-browser", action="store_true")
options.add_argument("--fault", choices=FAULTS)
asked = options.parse_args()
fault = asked.fault
store = asked.config_dir / "signin.json"
way_out = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay)


def fetch(url: str, body: bytes | None = None, headers: dict | None = None):
    try:
        with way_out.open(urllib.request.Request(url, body, headers or {}), timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.headers, answer.read()


def stored() -> dict:
    return json.loads(store.read_text()) if store.exists() else {}


def keep(record: dict) -> None:
    store.parent.mkdir(exist_ok=True)
    store.write_text(json.dumps(record))


def first_of(urls: list[str]) -> dict:
    for url in urls:
        status, _, body = fetch(url)
        if status == 200:
            return json.loads(body)
    raise No(f"there is nothing at {urls[-1]}")


def well_known(name: str, url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/.well-known/{name}{parts.path.rstrip('/')}"


def sign_in(challenge: str) -> None:
    said = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    root = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(asked.url))
    names = [well_known("oauth-protected-resource", at) for at in (asked.url, root)]
    protected = first_of([said["resource_metadata"]] if "resource_metadata" in said else names)
    resource, issuer = protected["resource"], protected["authorization_servers"][0]
    if fault != "resource" and resource not in (asked.url, root):
        raise No("the metadata is of another resource")
    if asked.issuer not in (None, issuer):
        raise No("the endpoint names another authorization server than --issuer")
    server = first_of(
        [
            well_known("oauth-authorization-server", issuer),
            well_known("openid-configuration", issuer),
            f"{issuer}/.well-known/openid-configuration",
        ]
    )
    if fault != "issuer" and server["issuer"] != issuer:
        raise No("the metadata is of another issuer")
    before = stored()
    wanted = said["scope"].split() if "scope" in said else protected.get("scopes_supported", [])
    wanted = sorted({*before.get("asked", []), *before.get("missing", []), *wanted})
    if fault == "slash":
        resource += "/"
    verifier, state, seen = secrets.token_urlsafe(32), secrets.token_urlsafe(16), {}

    class Callback(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.update(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Callback) as callback:
        back = f"http://127.0.0.1:{callback.server_port}/callback"
        client = registered(server, issuer, before, back)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {"response_type": "code", "client_id": client["client_id"], "redirect_uri": back, "state": state}
        query |= {"code_challenge": challenge, "code_challenge_method": "S256", "resource": resource}
        if wanted and fault != "scope":
            query["scope"] = " ".join(wanted)
        link = f"{server['authorization_endpoint']}?{urllib.parse.urlencode(query)}"
        print(f"sign in at: {link}", file=sys.stderr, flush=True)
        callback.timeout = 20
        callback.handle_request()
    if seen.get("state") != state:
        raise No("nobody signed in")
    must = server.get("authorization_response_iss_parameter_supported")
    if fault != "iss" and seen.get("iss", None if must else issuer) != issuer:
        raise No("the answer is of another issuer")
    form = {"grant_type": "authorization_code", "code": seen["code"], "redirect_uri": back, "resource": resource}
    form |= {"code_verifier": verifier[::-1] if fault == "pkce" else verifier, "client_id": client["client_id"]}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    methods = server.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    if "client_secret" in client and "client_secret_basic" in methods:
        pair = f"{client['client_id']}:{client['client_secret']}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    elif "client_secret" in client and "client_secret_post" in methods:
        form["client_secret"] = client["client_secret"]
    status, _, body = fetch(server["token_endpoint"], urllib.parse.urlencode(form).encode(), headers)
    if status != 200:
        raise No(f"the token endpoint answered {status}")
    token = json.loads(body)["access_token"]
    if fault == "leak":
        print(f"token: {token}", file=sys.stderr)
    keep({"issuer": issuer, "client": client, "token": token, "asked": wanted})


def registered(server: dict, issuer: str, before: dict, back: str) -> dict:
    if asked.client_id:
        secret = asked.client_secret_file
        return {"client_id": asked.client_id, **({"client_secret": secret.read_text()} if secret else {})}
    if server.get("client_id_metadata_document_supported") and asked.client_metadata_url:
        return {"client_id": asked.client_metadata_url}
    if before and (fault == "reuse" or before["issuer"] == issuer):
        return before["client"]
    about = {"client_name": "stand-in", "application_type": "native", "redirect_uris": [back]}
    about |= {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
    about["token_endpoint_auth_method"] = "none"
    sent = json.dumps(about).encode()
    return json.loads(fetch(server["registration_endpoint"], sent, {"Content-Type": "application/json"})[2])


def post(line: bytes, version: str) -> tuple[int, str, dict | None]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": version, "Mcp-Method": json.loads(line)["method"]}
    if "token" in stored():
        headers["Authorization"] = f"Bearer {stored()['token']}"
    status, answered, body = fetch(asked.url, line, headers)
    if "text/event-stream" in answered.get("Content-Type", ""):
        body = b"".join(part[5:] for part in body.splitlines() if part.startswith(b"data:"))
    content = json.loads(body) if body and status in (200, 400) else None
    return status, answered.get("WWW-Authenticate", ""), content


def serve(line: bytes, version: str) -> dict | None:
    status, challenge, content = post(line, version)
    if status == 401 and "token" not in stored() and fault != "idle":
        sign_in(challenge)
        status, challenge, content = post(line, version)
    if status == 401:
        raise Failed("sign_in_required", f"sign in: mcp-hasp --url {asked.url} --login")
    if status == 403:
        scope = re.search(r'scope="([^"]*)"', challenge)[1]
        keep({**stored(), "missing": scope.split()})
        raise Failed("insufficient_scope", f"{scope} is missing: mcp-hasp --url {asked.url} --login")
    if content is None and status != 202:
        raise Failed("http_status", f"the endpoint answered {status}")
    return content


def relay() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        version = message.get("params", {}).get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        try:
            answer = serve(line, version or "2025-11-25")
        except Failed as why:
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": why.answer}
        if answer and fault != "silent":
            print(json.dumps(answer), flush=True)
        if fault == "dies" and "error" in (answer or {}):
            raise No("there is no sign-in")


def login() -> None:
    hello = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}}
    _, challenge, _ = post(json.dumps(hello).encode(), "2025-11-25")
    sign_in(challenge)


try:
    login() if asked.login else relay()
except No as why:
    print(f"stand-in: {why}", file=sys.stderr)
    sys.exit(77)
