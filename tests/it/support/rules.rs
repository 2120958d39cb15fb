//! What a client must and must not do. Every request is held against these rules.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    Era, MODERN,
    record::{Fate, Recorded},
};

/// The `_meta` key of the revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key of the client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What the endpoint expects of the request that just came.
pub struct Expected<'a> {
    /// The endpoint's era.
    pub era: Era,
    /// The one path.
    pub path: &'a str,
    /// The bearer token that must be shown, if any.
    pub bearer: Option<&'a str>,
    /// Tokens are somebody else's business.
    pub guarded: bool,
    /// The session that was issued last and not forgotten.
    pub session: Option<&'a str>,
    /// Sessions that were issued once and are over.
    pub past_sessions: &'a [String],
    /// The revision agreed on by `initialize`.
    pub negotiated: Option<&'a str>,
    /// Everything that came before.
    pub earlier: &'a [Recorded],
}

/// Every rule that the request breaks, in words.
pub fn broken(request: &Recorded, expected: &Expected<'_>) -> Vec<String> {
    let mut broken = Broken { request, list: Vec::new() };
    broken.common(expected);
    broken.session(expected);
    match request.verb.as_str() {
        "POST" => broken.post(expected),
        "GET" => broken.get(expected),
        "DELETE" => broken.rule(expected.session.is_some(), "DELETE without a session"),
        _ => broken.rule(false, "a verb that MCP does not use"),
    }
    broken.list
}

struct Broken<'a> {
    request: &'a Recorded,
    list: Vec<String>,
}

impl Broken<'_> {
    fn rule(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            let Recorded { order, verb, path, .. } = self.request;
            self.list.push(format!("#{order} {verb} {path} {}: {otherwise}", self.request.method()));
        }
    }

    fn common(&mut self, expected: &Expected<'_>) {
        let request = self.request;
        self.rule(request.path == expected.path, "wrong path");
        self.rule(request.header("cookie").is_none(), "a cookie");
        self.rule(request.header("origin").is_none(), "an Origin header");
        let encoding = request.header("accept-encoding");
        self.rule(
            encoding.is_none_or(|value| value == "identity"),
            "an Accept-Encoding that allows compression",
        );
        let bearer = expected.bearer.map(|token| format!("Bearer {token}"));
        let count = request.headers.iter().filter(|(name, _)| name == "authorization").count();
        self.rule(
            expected.guarded || request.header("authorization") == bearer.as_deref() && count <= 1,
            "another Authorization header than expected",
        );
    }

    fn session(&mut self, expected: &Expected<'_>) {
        let sent = self.request.header("mcp-session-id");
        let opening = matches!(self.request.method(), "initialize") && expected.era == Era::Legacy;
        if opening {
            self.rule(sent.is_none(), "initialize with a session id");
        } else if !sent.is_some_and(|sent| expected.past_sessions.iter().any(|past| past == sent)) {
            self.rule(sent == expected.session, "not the session id that was issued");
        }
    }

    fn get(&mut self, expected: &Expected<'_>) {
        self.rule(expected.era == Era::Legacy, "GET in the modern era");
        self.rule(accepts(self.request, "text/event-stream"), "Accept without text/event-stream");
        self.negotiated(expected);
    }

    fn post(&mut self, expected: &Expected<'_>) {
        let request = self.request;
        self.rule(media_type(request) == "application/json", "Content-Type is not application/json");
        self.rule(
            accepts(request, "application/json") && accepts(request, "text/event-stream"),
            "Accept must list application/json and text/event-stream",
        );
        self.rule(request.json.is_object(), "the body is not one JSON object");
        self.rule(request.json["jsonrpc"] == "2.0", "jsonrpc is not \"2.0\"");
        let known = request.is_request() || request.is_notification() || request.is_response();
        self.rule(known, "neither request nor notification nor response");
        if request.is_request() {
            let id = &request.json["id"];
            self.rule(id.is_string() || id.is_i64() || id.is_u64(), "the id is neither string nor integer");
            let twice = expected.earlier.iter().any(|earlier| {
                earlier.fate == Fate::Open && earlier.is_request() && earlier.json["id"] == *id
            });
            self.rule(!twice, "the id of a request that is still in flight");
        }
        if expected.era == Era::Modern || request.method() == "server/discover" {
            self.modern();
        } else {
            self.legacy(expected);
        }
    }

    fn modern(&mut self) {
        let request = self.request;
        let meta = request.param("_meta");
        self.rule(request.is_request(), "only requests are posted in the modern era");
        self.rule(meta[META_VERSION] == MODERN, "_meta names no modern protocolVersion");
        self.rule(meta[META_CAPABILITIES].is_object(), "_meta has no clientCapabilities");
        self.rule(
            request.header("mcp-protocol-version") == meta[META_VERSION].as_str(),
            "MCP-Protocol-Version is missing or differs from _meta",
        );
        self.rule(
            request.header("mcp-method") == Some(request.method()),
            "Mcp-Method is missing or differs from the method",
        );
        let name = request.header("mcp-name").map(decoded);
        let about = named_member(request.method()).map(|member| request.param(member));
        match about {
            Some(about) => self.rule(
                name.flatten().as_deref() == about.as_str(),
                "Mcp-Name is missing, malformed or differs from the body",
            ),
            None => self.rule(name.is_none(), "Mcp-Name on a method that has none"),
        }
    }

    fn legacy(&mut self, expected: &Expected<'_>) {
        let request = self.request;
        let claim = request.param("_meta").get(META_VERSION);
        self.rule(claim.is_none(), "a modern protocolVersion in _meta of a legacy message");
        if request.method() == "initialize" {
            let version = request.header("mcp-protocol-version");
            self.rule(version.is_none(), "MCP-Protocol-Version on initialize");
            self.rule(request.param("protocolVersion").is_string(), "initialize without protocolVersion");
            self.rule(request.param("capabilities").is_object(), "initialize without capabilities");
        } else {
            self.rule(expected.negotiated.is_some(), "a message before initialize was answered");
            self.negotiated(expected);
        }
    }

    fn negotiated(&mut self, expected: &Expected<'_>) {
        let version = self.request.header("mcp-protocol-version");
        self.rule(version == expected.negotiated, "MCP-Protocol-Version is not the negotiated one");
    }
}

/// The member of `params` that `Mcp-Name` repeats.
fn named_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// The text behind a header value; `None` when it is not properly encoded.
pub fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn media_type(request: &Recorded) -> String {
    let value = request.header("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn accepts(request: &Recorded, media: &str) -> bool {
    let listed = |(name, value): &(String, String)| {
        name == "accept"
            && value.split(',').any(|part| {
                part.split(';').next().is_some_and(|part| part.trim().eq_ignore_ascii_case(media))
            })
    };
    request.headers.iter().any(listed)
}

/// Whether a `notifications/cancelled` names that request id.
pub fn cancels(request: &Recorded, id: &Value) -> bool {
    request.method() == "notifications/cancelled" && request.param("requestId") == id
}
