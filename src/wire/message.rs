//! A JSON-RPC message: its text as it came, and where the members of its envelope stand.

use std::ops::Range;

use bytes::Bytes;

use super::json::Object;
use super::parse::Envelope;

/// A request id as its own text: `1` and `"1"` differ, and no digit is lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(Box<str>);

impl Id {
    /// Takes the JSON text of an id.
    pub fn from_json(text: &str) -> Self {
        Id(text.into())
    }

    /// The JSON text, quotes included for a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What stands in the envelope beside the id.
#[derive(Debug)]
pub(super) enum Body {
    Call,
    Result(Range<usize>),
    Error(Range<usize>),
}

/// One message. Made by [`super::parse`] alone.
#[derive(Debug)]
pub struct Message {
    text: String,
    id: Option<Id>,
    method: Option<String>,
    params: Option<Range<usize>>,
    body: Body,
}

impl Message {
    pub(super) fn assemble(text: String, parts: Envelope) -> Self {
        let id = parts.id.and_then(|span| text.get(span)).map(Id::from_json);
        Message { id, method: parts.method, params: parts.params, body: parts.body, text }
    }

    /// The id, unless it is a notification or an error that names no request.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// The text of `params`, an object. `{}` when absent.
    pub fn params(&self) -> &str {
        self.params.clone().and_then(|span| self.text.get(span)).unwrap_or("{}")
    }

    /// The members of `params`.
    pub fn params_object(&self) -> Object<'_> {
        // The door has read params already, so the empty object stands in for nothing that happens.
        Object::read(self.params()).unwrap_or_default()
    }

    /// The text of `result`.
    pub fn result(&self) -> Option<&str> {
        match &self.body {
            Body::Result(span) => self.text.get(span.clone()),
            _ => None,
        }
    }

    /// The text of `error`.
    pub fn error(&self) -> Option<&str> {
        match &self.body {
            Body::Error(span) => self.text.get(span.clone()),
            _ => None,
        }
    }

    /// Whether it answers a request.
    pub fn is_answer(&self) -> bool {
        !matches!(self.body, Body::Call)
    }

    /// The bytes of `result`, or of `error`, without a copy. Empty for a request.
    pub fn into_outcome(self) -> Bytes {
        match self.body {
            Body::Result(span) | Body::Error(span) => Bytes::from(self.text).slice(span),
            Body::Call => Bytes::new(),
        }
    }

    /// The bytes of `params` without a copy. `{}` when absent.
    pub fn into_params(self) -> Bytes {
        match self.params {
            Some(span) => Bytes::from(self.text).slice(span),
            None => Bytes::from_static(b"{}"),
        }
    }
}
