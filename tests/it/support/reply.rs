//! What the endpoint can be told to answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::Notify;

/// One scripted answer to one HTTP request.
#[must_use]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content: Content,
}

/// The kinds of answers.
pub(super) enum Content {
    Result(String),
    Error(String),
    Full(Bytes),
    Script(Script),
    CutJson { body: Bytes, keep: usize },
    Endless(Bytes),
    Drip { body: Bytes, every: Duration },
    Hang,
    Close,
}

impl Reply {
    fn new(status: u16, content: Content) -> Self {
        Self { status, headers: Vec::new(), content }
    }

    /// A result, from its exact text; the envelope carries the request's id, and the mode decides on JSON or SSE.
    pub fn result(raw: impl Into<String>) -> Self {
        Self::new(200, Content::Result(raw.into()))
    }

    /// A text block as the result of a tool, good for both eras.
    pub fn text(text: &str) -> Self {
        let text = Value::from(text);
        Self::result(format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":{text}}}]}}"#))
    }

    /// An error, from the exact text of the `error` member.
    pub fn error(raw: impl Into<String>) -> Self {
        Self::new(200, Content::Error(raw.into()))
    }

    /// An error from its code and message.
    pub fn error_code(code: i64, message: &str) -> Self {
        Self::error(format!(r#"{{"code":{code},"message":{}}}"#, Value::from(message)))
    }

    /// A whole body, taken as it is.
    pub fn full(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::new(status, Content::Full(body.into())).with_header("content-type", content_type)
    }

    /// A status and nothing else.
    pub fn status(status: u16) -> Self {
        Self::new(status, Content::Full(Bytes::new()))
    }

    /// 202 with nothing.
    pub fn accepted() -> Self {
        Self::status(202)
    }

    /// An SSE stream that follows a script.
    pub fn sse(script: Script) -> Self {
        Self::new(200, Content::Script(script)).with_header("content-type", "text/event-stream")
    }

    /// A JSON body that announces its whole length, sends the first `keep` bytes and cuts the connection.
    pub fn cut_json(body: impl Into<Bytes>, keep: usize) -> Self {
        Self::new(200, Content::CutJson { body: body.into(), keep })
            .with_header("content-type", "application/json")
    }

    /// The same piece again and again, until the client goes away.
    pub fn endless(content_type: &str, piece: impl Into<Bytes>) -> Self {
        Self::new(200, Content::Endless(piece.into())).with_header("content-type", content_type)
    }

    /// A body that comes byte by byte.
    pub fn drip(content_type: &str, body: impl Into<Bytes>, every: Duration) -> Self {
        Self::new(200, Content::Drip { body: body.into(), every }).with_header("content-type", content_type)
    }

    /// Not even a status line, until the client goes away.
    pub fn hang() -> Self {
        Self::new(200, Content::Hang)
    }

    /// The request is read, the connection closed, nothing answered.
    pub fn close() -> Self {
        Self::new(200, Content::Close)
    }

    /// The same with another status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same with one more header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A function from the response that the client posted to what the stream goes on with.
pub type Continue = Box<dyn FnOnce(&Value) -> Script + Send>;

/// One step of an SSE script.
pub enum Step {
    /// Bytes as they are.
    Raw(Bytes),
    /// The answer to the request, from the text of `result`.
    Result(String),
    /// The answer to the request, from the text of `error`.
    Error(String),
    /// Waits until the test says go (`notify_one` before or after this point).
    Wait(Arc<Notify>),
    /// Waits until the client has posted the response with that id, and goes on with what it leads to.
    Posted(Value, Continue),
    /// Nothing more, until the client goes away.
    Hang,
    /// Cuts the connection.
    Cut,
}

/// The steps of an SSE stream. It ends cleanly after the last one.
#[derive(Default)]
#[must_use]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

impl Script {
    /// A stream that ends at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more step.
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// A message event with that data.
    pub fn event(self, data: impl AsRef<str>) -> Self {
        self.raw(event_text(data.as_ref()))
    }

    /// A notification.
    pub fn notification(self, method: &str, params_raw: &str) -> Self {
        self.event(notification_text(method, params_raw))
    }

    /// A server-to-client request (legacy).
    pub fn request(self, id_raw: &str, method: &str, params_raw: &str) -> Self {
        self.event(format!(r#"{{"jsonrpc":"2.0","id":{id_raw},"method":"{method}","params":{params_raw}}}"#))
    }

    /// A comment line.
    pub fn comment(self, text: &str) -> Self {
        self.raw(format!(": {text}\n\n"))
    }

    /// An event with an id and empty data.
    pub fn id(self, id: &str) -> Self {
        self.raw(format!("id: {id}\ndata:\n\n"))
    }

    /// A reconnection time.
    pub fn retry(self, millis: u64) -> Self {
        self.raw(format!("retry: {millis}\n\n"))
    }

    /// Bytes as they are.
    pub fn raw(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Raw(bytes.into()))
    }

    /// The answer to the request.
    pub fn result(self, raw: impl Into<String>) -> Self {
        self.step(Step::Result(raw.into()))
    }

    /// The answer to the request, an error.
    pub fn error(self, raw: impl Into<String>) -> Self {
        self.step(Step::Error(raw.into()))
    }

    /// Waits until the test says go.
    pub fn wait(self, gate: &Arc<Notify>) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// Waits for the client's response to the request with that id, and goes on with what it leads to.
    pub fn posted(self, id_raw: &str, then: impl FnOnce(&Value) -> Script + Send + 'static) -> Self {
        self.step(Step::Posted(serde_json::from_str(id_raw).unwrap(), Box::new(then)))
    }

    /// Nothing more, until the client goes away.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Cuts the connection.
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }
}

/// The text of a message event.
pub fn event_text(data: &str) -> String {
    let mut text = "event: message\n".to_owned();
    for line in data.split('\n') {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text + "\n"
}

/// A notification, without its event.
pub fn notification_text(method: &str, params_raw: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params_raw}}}"#)
}

/// A success response, without its event.
pub fn result_text(id_raw: &str, result_raw: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id_raw},"result":{result_raw}}}"#)
}

/// An error response, without its event.
pub fn error_text(id_raw: &str, error_raw: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id_raw},"error":{error_raw}}}"#)
}
