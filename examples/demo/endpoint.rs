//! The demo endpoint: a remote MCP server, here on a port of 127.0.0.1 that the system chose.
//!
//! It speaks 2026-07-28 over Streamable HTTP and is strict on purpose. A request that breaks a rule of the
//! protocol is refused, and noted in the journal, where the story finds it and fails: what passes here is
//! correct rather than tolerated.
//!
//! A request goes `door` (is it well formed?) → `route` (which method?) → an answer, or for the long call a
//! stream. What the endpoint shows of itself can be changed while it runs: its tools, and the surface hash that it
//! declares; and it can be protected, by the authorization server of `authority.rs`. Change announcements and the status
//! resources of a channel belong beside `route`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Result;
use crate::authority::{self, Authority};
use crate::lighthouse::{self, Deed, Edition};
use crate::server::{self, Answer, Server, unguessable};

/// The one revision this endpoint speaks.
pub(crate) const VERSION: &str = "2026-07-28";

/// The running endpoint. Dropping it closes the port and every connection.
pub(crate) struct Endpoint {
    /// What goes behind `--url`.
    pub(crate) url: String,
    desk: Arc<Desk>,
    journal: mpsc::UnboundedReceiver<Entry>,
    _server: Server,
}

/// One line of the journal: what the endpoint saw, and when.
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) seen: Seen,
}

/// What the endpoint saw.
pub(crate) enum Seen {
    /// A well-formed request, by method and, where it has one, name.
    Arrived(String),
    /// The caller hung up on a running call: in this era that is how a call is cancelled.
    Cancelled(String),
    /// A request that breaks a rule of the protocol.
    Refused(String),
}

impl Endpoint {
    /// Opens the port and starts to serve.
    pub(crate) async fn start() -> Result<Self> {
        let listener = server::listener().await?;
        let authority = listener.local_addr()?.to_string();
        let (note, journal) = mpsc::unbounded_channel();
        let url = format!("http://{authority}/mcp");
        let shown = Mutex::default();
        let desk = Desk { authority, note, questions: Mutex::default(), shown, protection: Mutex::default() };
        let desk = Arc::new(desk);
        let serving = Arc::clone(&desk);
        let server = Server::start(listener, move |request| {
            let desk = Arc::clone(&serving);
            async move { serve(&desk, request).await }
        });
        Ok(Self { url, desk, journal, _server: server })
    }

    /// From now on every request needs a token of this authorization server.
    pub(crate) fn protect(&self, authority: &Authority) {
        *self.desk.protection.lock().unwrap_or_else(PoisonError::into_inner) = Some(authority.desk());
    }

    /// From now on the endpoint lists the tools of this edition, and declares this hash in the `_meta` of each result.
    pub(crate) fn show(&self, edition: Edition, declared: Option<&'static str>) {
        *self.desk.shown.lock().unwrap_or_else(PoisonError::into_inner) = Shown { edition, declared };
    }

    /// Everything noted since the last look.
    pub(crate) fn noted(&mut self) -> Vec<Entry> {
        std::iter::from_fn(|| self.journal.try_recv().ok()).collect()
    }

    /// The next note, as soon as there is one.
    pub(crate) async fn next_note(&mut self) -> Result<Entry> {
        self.journal.recv().await.ok_or_else(|| "the endpoint is gone".into())
    }

    /// The first refusal since the last look, if there was one.
    pub(crate) fn refusal(&mut self) -> Option<String> {
        self.noted().into_iter().find_map(|entry| match entry.seen {
            Seen::Refused(why) => Some(why),
            Seen::Arrived(_) | Seen::Cancelled(_) => None,
        })
    }
}

/// What the endpoint shows of itself.
#[derive(Clone, Copy, Default)]
struct Shown {
    edition: Edition,
    declared: Option<&'static str>,
}

/// What every request of the endpoint shares.
struct Desk {
    authority: String,
    note: mpsc::UnboundedSender<Entry>,
    /// Questions that wait for a person, by `requestState`.
    questions: Mutex<HashMap<String, Question>>,
    shown: Mutex<Shown>,
    /// Whose tokens are asked for, where they are.
    protection: Mutex<Option<Arc<authority::Desk>>>,
}

/// An answer counts only for the call that asked: same tool, same arguments.
#[derive(PartialEq)]
struct Question {
    tool: String,
    arguments: Value,
}

impl Desk {
    fn note(&self, seen: Seen) {
        // the story may have ended already; then nobody reads the journal
        let _ = self.note.send(Entry { at: Instant::now(), seen });
    }

    /// Remembers a question under a handle that cannot be guessed and is good for one answer.
    fn remember(&self, question: Question) -> String {
        let handle = unguessable();
        self.questions().insert(handle.clone(), question);
        handle
    }

    fn shown(&self) -> Shown {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> std::sync::MutexGuard<'_, HashMap<String, Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(desk: &Arc<Desk>, request: Request<Incoming>) -> Response<Answer> {
    if let Some(instead) = sign_in_first(desk, &request) {
        return instead;
    }
    match door(desk, request).await {
        Ok(call) => {
            desk.note(Seen::Arrived(call.label()));
            route(desk, &call).unwrap_or_else(|error| error.response(&call.id))
        }
        Err(Refused { id, error }) => {
            desk.note(Seen::Refused(error.message.clone()));
            error.response(&id)
        }
    }
}

/// Where the endpoint is protected: no request without a token, and a document that says where to get one (RFC 9728).
fn sign_in_first(desk: &Desk, request: &Request<Incoming>) -> Option<Response<Answer>> {
    let protection = desk.protection.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    if request.method() == Method::GET && request.uri().path() == METADATA_PATH {
        return Some(server::json(&protection.protected_resource_metadata()));
    }
    if protection.lets_in(header(request.headers(), AUTHORIZATION.as_str())) {
        return None;
    }
    let mut response = server::respond(StatusCode::UNAUTHORIZED, "text/plain", "sign in first");
    let challenge =
        format!(r#"Bearer resource_metadata="http://{}{METADATA_PATH}", scope="lighthouse""#, desk.authority);
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    Some(response)
}

// === the door: what a request must look like ===

/// A request that kept every rule.
struct Call {
    id: Value,
    method: String,
    params: Value,
}

impl Call {
    /// The value that the `Mcp-Name` header repeats, for the methods that have one.
    fn name(&self) -> Option<&str> {
        let key = match self.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return None,
        };
        self.params.get(key).and_then(Value::as_str)
    }

    fn label(&self) -> String {
        match self.name() {
            Some(name) => format!("{} {name}", self.method),
            None => self.method.clone(),
        }
    }
}

/// Why a request was turned away at the door.
struct Refused {
    id: Value,
    error: Error,
}

async fn door(desk: &Desk, request: Request<Incoming>) -> std::result::Result<Call, Refused> {
    let (head, body) = request.into_parts();
    let refused = |id: &Value, error| Refused { id: id.clone(), error };
    let nobody = Value::Null;

    if head.uri.path() != "/mcp" {
        return Err(refused(&nobody, Error::http(StatusCode::NOT_FOUND, "there is only /mcp here")));
    }
    if head.method != Method::POST {
        return Err(refused(&nobody, Error::http(StatusCode::METHOD_NOT_ALLOWED, "2026-07-28 is POST only")));
    }
    // a page in a browser must not reach a server on loopback: neither directly nor by a name that points here
    if head.headers.contains_key(ORIGIN) || header(&head.headers, HOST.as_str()) != Some(&desk.authority) {
        return Err(refused(&nobody, Error::http(StatusCode::FORBIDDEN, "foreign Origin or Host")));
    }
    if media_types(&head.headers, CONTENT_TYPE.as_str()) != ["application/json"] {
        return Err(refused(
            &nobody,
            Error::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type is not application/json"),
        ));
    }
    let accepted = media_types(&head.headers, ACCEPT.as_str());
    if !["application/json", "text/event-stream"].iter().all(|kind| accepted.contains(kind)) {
        return Err(refused(
            &nobody,
            Error::http(
                StatusCode::NOT_ACCEPTABLE,
                "Accept must list application/json and text/event-stream",
            ),
        ));
    }

    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
        return Err(refused(
            &nobody,
            Error::http(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or broken"),
        ));
    };
    let Ok(mut message) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return Err(refused(&nobody, Error::bad(-32700, "the body is not JSON")));
    };
    let id = message["id"].clone();
    if message["jsonrpc"] != "2.0" || !(id.is_string() || id.is_i64() || id.is_u64()) {
        // arrays, responses and notifications end here too: nothing but requests is sent in this era
        return Err(refused(&nobody, Error::bad(-32600, "the body is not one JSON-RPC request")));
    }
    let Some(method) = message["method"].as_str().map(str::to_owned) else {
        return Err(refused(&id, Error::bad(-32600, "a request needs a method")));
    };
    let call = Call { id, method, params: message["params"].take() };
    check_envelope(&head.headers, &call).map_err(|error| refused(&call.id, error))?;
    Ok(call)
}

/// The envelope of 2026-07-28: version and capabilities in `_meta`, and headers that agree with the body.
fn check_envelope(headers: &HeaderMap, call: &Call) -> std::result::Result<(), Error> {
    let meta = &call.params["_meta"];
    let Some(version) = meta["io.modelcontextprotocol/protocolVersion"].as_str() else {
        // an `initialize` of an older client ends here: it learns which revision would have worked
        let text = format!("{} carries no io.modelcontextprotocol/protocolVersion", call.method);
        return Err(Error::bad(-32022, &text).with(json!({"supported": [VERSION], "requested": null})));
    };
    agree(headers, "mcp-protocol-version", version)?;
    if version != VERSION {
        return Err(Error::bad(-32022, "this endpoint speaks 2026-07-28 alone")
            .with(json!({"supported": [VERSION], "requested": version})));
    }
    if !meta["io.modelcontextprotocol/clientCapabilities"].is_object() {
        return Err(Error::bad(-32602, "_meta lacks io.modelcontextprotocol/clientCapabilities"));
    }
    agree(headers, "mcp-method", &call.method)?;
    if let Some(name) = call.name() {
        agree(headers, "mcp-name", name)?;
    }
    if call.method == "tools/call" {
        check_parameters(headers, call)?;
    }
    Ok(())
}

/// Arguments that a tool marked with `x-mcp-header` are repeated as `Mcp-Param-…`, if they are there.
fn check_parameters(headers: &HeaderMap, call: &Call) -> std::result::Result<(), Error> {
    let tools = lighthouse::tools(Edition::First);
    let Some(tool) = tools.iter().find(|tool| tool["name"] == call.params["name"]) else { return Ok(()) };
    let Some(properties) = tool["inputSchema"]["properties"].as_object() else { return Ok(()) };
    for (property, schema) in properties {
        let argument = &call.params["arguments"][property];
        if let (Some(suffix), Some(value)) = (schema["x-mcp-header"].as_str(), argument.as_str()) {
            agree(headers, &format!("mcp-param-{}", suffix.to_ascii_lowercase()), value)?;
        }
    }
    Ok(())
}

/// The header must be there and say what the body says.
fn agree(headers: &HeaderMap, name: &str, body: &str) -> std::result::Result<(), Error> {
    let header = header(headers, name);
    if header.and_then(decoded).as_deref() == Some(body) {
        return Ok(());
    }
    Err(Error::bad(-32020, &format!("header {name} is {header:?}, the body says {body:?}")))
}

/// Header values that are not plain ASCII come as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The media types of a header, without their parameters.
fn media_types<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a str> {
    let types = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    types
        .flat_map(|value| value.split(','))
        .filter_map(|kind| kind.split(';').next())
        .map(str::trim)
        .collect()
}

// === the methods ===

fn route(desk: &Arc<Desk>, call: &Call) -> std::result::Result<Response<Answer>, Error> {
    let cursor = &call.params["cursor"];
    let result = match call.method.as_str() {
        "server/discover" => cacheable(
            desk,
            &json!({
                "supportedVersions": [VERSION],
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "instructions": lighthouse::INSTRUCTIONS,
            }),
        ),
        "tools/list" => cacheable(desk, &tool_page(desk, cursor)?),
        "resources/list" if cursor.is_null() => {
            cacheable(desk, &json!({"resources": lighthouse::resources()}))
        }
        "resources/templates/list" if cursor.is_null() => cacheable(desk, &json!({"resourceTemplates": []})),
        "prompts/list" if cursor.is_null() => cacheable(desk, &json!({"prompts": lighthouse::prompts()})),
        "resources/list" | "resources/templates/list" | "prompts/list" => {
            return Err(Error::params("bad cursor"));
        }
        "resources/read" if call.name() == Some(lighthouse::LOG_URI) => {
            cacheable(desk, &json!({"contents": lighthouse::log()}))
        }
        "resources/read" => return Err(Error::params("no such resource")),
        "prompts/get" if call.name() == Some(lighthouse::REPORT) => {
            complete(desk, &json!({"messages": lighthouse::report()}).to_string())
        }
        "prompts/get" => return Err(Error::params("no such prompt")),
        "tools/call" => return tool_call(desk, call),
        _ => return Err(Error::unknown_method(&call.method)),
    };
    Ok(answered(&call.id, &result))
}

/// Two pages, because a reader that stops at the first has not seen the whole surface.
fn tool_page(desk: &Desk, cursor: &Value) -> std::result::Result<Value, Error> {
    let mut first = lighthouse::tools(desk.shown().edition);
    let second = first.split_off(first.len() / 2);
    match cursor.as_str() {
        None if cursor.is_null() => Ok(json!({"tools": first, "nextCursor": "second-page"})),
        Some("second-page") => Ok(json!({"tools": second})),
        _ => Err(Error::params("bad cursor")),
    }
}

fn tool_call(desk: &Arc<Desk>, call: &Call) -> std::result::Result<Response<Answer>, Error> {
    let name = call.name().unwrap_or_default();
    match lighthouse::call(name, &call.params["arguments"]) {
        Some(Deed::Done(payload)) => Ok(answered(&call.id, &complete(desk, &payload))),
        Some(Deed::Watch) => Ok(watch(desk, call)),
        Some(Deed::Ask(ship)) => Ok(answered(&call.id, &ask(desk, call, &ship)?)),
        None => Err(Error::params("no such tool")),
    }
}

/// A question to the user takes two calls: the first is answered with the question, the second, a repetition
/// of the first, brings the answer and the `requestState` that ties the two together.
fn ask(desk: &Desk, call: &Call, ship: &str) -> std::result::Result<String, Error> {
    let question = Question { tool: "ask_keeper".to_owned(), arguments: call.params["arguments"].clone() };
    if let Some(state) = call.params["requestState"].as_str() {
        return match desk.questions().remove(state) {
            Some(asked) if asked == question => {
                Ok(complete(desk, &lighthouse::answered(ship, &call.params["inputResponses"]["keeper"])))
            }
            _ => Err(Error::params("requestState belongs to no open question")),
        };
    }
    if !can_be_asked(&call.params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["elicitation"]) {
        return Err(Error::bad(-32021, "ask_keeper needs a client that can ask its user")
            .with(json!({"requiredCapabilities": {"elicitation": {"form": {}}}})));
    }
    let state = desk.remember(question);
    let payload = json!({
        "resultType": "input_required",
        "inputRequests": {"keeper": {"method": "elicitation/create", "params": lighthouse::question(ship)}},
        "requestState": state,
        "_meta": {SERVER_INFO: server_info()},
    });
    Ok(payload.to_string())
}

/// `elicitation: {}` means forms, as does `{form: {}}`; `{url: {}}` alone does not.
fn can_be_asked(elicitation: &Value) -> bool {
    elicitation.as_object().is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
}

/// The long call: progress as it goes on, the result last. The caller hanging up is what cancels it.
fn watch(desk: &Arc<Desk>, call: &Call) -> Response<Answer> {
    let (events, body) = mpsc::channel(1);
    let (desk, id) = (Arc::clone(desk), call.id.clone());
    let token = call.params["_meta"]["progressToken"].clone();
    tokio::spawn(async move {
        let mut messages = Vec::new();
        if !token.is_null() {
            messages.extend(lighthouse::WATCH.iter().zip(1..).map(|(message, progress)| {
                json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {
                        "progressToken": token,
                        "progress": progress,
                        "total": lighthouse::WATCH.len(),
                        "message": message,
                    },
                })
                .to_string()
            }));
        }
        messages.push(json_rpc(&id, "result", &complete(&desk, &lighthouse::watched())));
        for message in messages {
            tokio::select! {
                () = events.closed() => return desk.note(Seen::Cancelled("tools/call watch".to_owned())),
                () = tokio::time::sleep(STEP) => {}
            }
            if events.send(Bytes::from(format!("data: {message}\n\n"))).await.is_err() {
                return desk.note(Seen::Cancelled("tools/call watch".to_owned()));
            }
        }
    });
    server::streamed(StatusCode::OK, "text/event-stream", Answer::new(Events(body)))
}

// === what goes back ===

/// The body of the long call. Hyper drops it as soon as the caller has hung up, which closes the channel.
struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A JSON-RPC error and the HTTP status that 2026-07-28 gives it.
struct Error {
    status: StatusCode,
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Error {
    /// Not even a JSON-RPC request, as far as the door could see.
    fn http(status: StatusCode, message: &str) -> Self {
        Self { status, code: -32600, message: message.to_owned(), data: None }
    }

    /// A request whose form is wrong.
    fn bad(code: i64, message: &str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, message: message.to_owned(), data: None }
    }

    /// A well-formed request for something that is not here.
    fn params(message: &str) -> Self {
        Self { status: StatusCode::OK, code: -32602, message: message.to_owned(), data: None }
    }

    fn unknown_method(method: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            code: -32601,
            message: format!("no method {method} here"),
            data: None,
        }
    }

    fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    fn response(&self, id: &Value) -> Response<Answer> {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        let body = json_rpc(id, "error", &error.to_string());
        let mut response = server::respond(self.status, "application/json", body);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

fn answered(id: &Value, result: &str) -> Response<Answer> {
    server::respond(StatusCode::OK, "application/json", json_rpc(id, "result", result))
}

fn json_rpc(id: &Value, kind: &str, payload: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{kind}":{payload}}}"#)
}

/// The envelope of a result that completes its request. The payload stays the text it is.
fn complete(desk: &Desk, payload: &str) -> String {
    let mut meta = json!({SERVER_INFO: server_info()});
    if let Some(hash) = desk.shown().declared {
        meta[SURFACE_HASH] = json!(hash);
    }
    let members = payload.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    format!(r#"{{"resultType":"complete",{members},"_meta":{meta}}}"#)
}

/// The same with the two caching hints that lists and resources have to carry.
fn cacheable(desk: &Desk, payload: &Value) -> String {
    let mut payload = payload.clone();
    payload["ttlMs"] = json!(0);
    payload["cacheScope"] = json!("private");
    complete(desk, &payload.to_string())
}

fn server_info() -> Value {
    json!({"name": "lighthouse", "title": "Lighthouse", "version": "1.0.0"})
}

/// Any namespace will do: mcp-hasp goes by the last segment.
const SURFACE_HASH: &str = "com.example/surfaceHash";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The path of the endpoint, behind the well-known part (RFC 9728 §3.1).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
const MAX_BODY: usize = 1024 * 1024;
/// Time between two progress notifications of `watch`.
const STEP: Duration = Duration::from_millis(300);
