//! A JSON-RPC message: its text as it came, and where its members stand.

use std::ops::Range;

use bytes::Bytes;

use super::json::{Object, Place};

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

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// A request or a notification; its payload is `params`.
    Call,
    /// Its payload is `result`.
    Result,
    /// Its payload is `error`.
    Error,
}

/// An object inside the text, read once.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) span: Range<usize>,
    pub(super) places: Vec<Place>,
}

/// One message. Made by [`super::parse`] alone.
#[derive(Debug)]
pub struct Message {
    pub(super) text: String,
    pub(super) id: Option<Id>,
    pub(super) method: Option<String>,
    pub(super) sort: Sort,
    /// `params`, `result` or `error`.
    pub(super) payload: Option<Part>,
    /// The `_meta` of the payload.
    pub(super) meta: Option<Part>,
}

impl Message {
    /// The id, unless it is a notification or an error that names no request.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Whether it answers a request.
    pub fn is_answer(&self) -> bool {
        self.sort != Sort::Call
    }

    /// The members of `params`, of `result` or of `error`. Without `params`: `{}`.
    pub fn payload(&self) -> Object<'_> {
        self.object(self.payload.as_ref())
    }

    /// The members of the `_meta` in `params` or `result`. Without one: `{}`.
    pub fn meta(&self) -> Object<'_> {
        self.object(self.meta.as_ref())
    }

    /// The text of `result`.
    pub fn result(&self) -> Option<&str> {
        (self.sort == Sort::Result).then(|| self.payload().text())
    }

    /// The text of `error`.
    pub fn error(&self) -> Option<&str> {
        (self.sort == Sort::Error).then(|| self.payload().text())
    }

    /// The bytes of `params`, of `result` or of `error`, without a copy. Without `params`: `{}`.
    pub fn into_payload(self) -> Bytes {
        match self.payload {
            Some(part) => Bytes::from(self.text).slice(part.span),
            None => Bytes::from_static(b"{}"),
        }
    }

    fn object<'m>(&'m self, part: Option<&'m Part>) -> Object<'m> {
        part.and_then(|part| Some(Object::known(self.text.get(part.span.clone())?, &part.places)))
            .unwrap_or_default()
    }
}
