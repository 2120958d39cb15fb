//! The one door for JSON from outside: size is bounded by the reader, here depth, members and ids are.

use super::json::{self, NotReadable, Object};
use super::message::{Body, Message};

/// How deep objects and arrays may nest. Real messages stay below 30; readers that recurse break at some thousands.
pub const MAX_DEPTH: usize = 512;

/// Why a text is not a JSON-RPC 2.0 message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not UTF-8, or not JSON (JSON-RPC 2.0 §5.1: -32700).
    NotJson,
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// A JSON array of messages (removed from MCP in 2025-06-18).
    Batch,
    /// JSON, but no message (-32600). With the id where one could be read, as its own text.
    NotAMessage {
        /// What is wrong with it.
        why: String,
        /// The id's own text.
        id: Option<String>,
    },
}

/// Reads one message. Newlines between its tokens become spaces, so that it fits on one line.
pub fn parse(mut bytes: Vec<u8>) -> Result<Message, Malformed> {
    if memchr::memchr2(b'\n', b'\r', &bytes).is_some() {
        // Inside a JSON string neither may stand unescaped, so only white space changes.
        for byte in &mut bytes {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    if !json::depth_within(&bytes, MAX_DEPTH) {
        return Err(Malformed::TooDeep);
    }
    let text = String::from_utf8(bytes).map_err(|_| Malformed::NotJson)?;
    if text.trim_start().starts_with('[') {
        return match json::array_items(&text) {
            Ok(_) => Err(Malformed::Batch),
            Err(_) => Err(Malformed::NotJson),
        };
    }
    let parts = envelope(&text)?;
    Ok(Message::assemble(text, parts))
}

/// The places of an envelope's members.
pub(super) struct Envelope {
    pub(super) id: Option<std::ops::Range<usize>>,
    pub(super) method: Option<String>,
    pub(super) params: Option<std::ops::Range<usize>>,
    pub(super) body: Body,
}

fn envelope(text: &str) -> Result<Envelope, Malformed> {
    let object = match Object::read(text) {
        Ok(object) => object,
        Err(NotReadable::Duplicate(key)) => {
            return Err(Malformed::NotAMessage {
                why: format!("member {} stands twice", json::quote(&key)),
                id: None,
            });
        }
        Err(NotReadable::Syntax) => {
            let other_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            return Err(match other_json {
                true => Malformed::NotAMessage { why: "a message is an object".into(), id: None },
                false => Malformed::NotJson,
            });
        }
    };
    let id = object.member("id");
    let wrong = |why: &str| Malformed::NotAMessage {
        why: why.into(),
        id: id.map(|id| id.value).filter(|value| is_scalar(value)).map(str::to_owned),
    };
    if object.string("jsonrpc").as_deref() != Some("2.0") {
        return Err(wrong("member \"jsonrpc\" must be \"2.0\""));
    }
    let result = object.member("result");
    let error = object.member("error");
    let method = match object.member("method") {
        None => None,
        Some(_) => Some(object.string("method").ok_or_else(|| wrong("member \"method\" must be a string"))?),
    };
    let body = match (&method, result, error) {
        (Some(_), None, None) => Body::Call,
        (None, Some(result), None) => Body::Result(result.value_span.clone()),
        (None, None, Some(error)) => Body::Error(error.value_span.clone()),
        (None, None, None) => return Err(wrong("neither method nor result nor error")),
        _ => return Err(wrong("more than one of method, result and error")),
    };
    match (id.map(|id| id.value), &body) {
        (Some(value), _) if is_id(value) => {}
        // An error may say that it could not tell which request it belongs to (JSON-RPC 2.0 §5).
        (Some("null") | None, Body::Error(_)) | (None, Body::Call) => {}
        (None, _) => return Err(wrong("an answer needs an id")),
        _ => return Err(wrong("an id is a string or an integer")),
    }
    let params = object.member("params");
    if let Some(params) = params {
        match Object::read(params.value) {
            Ok(_) => {}
            Err(NotReadable::Duplicate(key)) => {
                return Err(wrong(&format!("member {} of params stands twice", json::quote(&key))));
            }
            Err(NotReadable::Syntax) => return Err(wrong("params must be an object")),
        }
    }
    Ok(Envelope {
        id: id.filter(|id| id.value != "null").map(|id| id.value_span.clone()),
        method: method.map(std::borrow::Cow::into_owned),
        params: params.map(|params| params.value_span.clone()),
        body,
    })
}

/// MCP allows strings and integers; an integer may have any number of digits.
fn is_id(value: &str) -> bool {
    if value.starts_with('"') {
        return json::decode_string(value).is_some();
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_scalar(value: &str) -> bool {
    !value.starts_with(['{', '[', 't', 'f', 'n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Message, Malformed> {
        parse(text.as_bytes().to_vec())
    }

    #[test]
    fn ids_are_strings_or_integers_of_any_size() {
        for id in ["0", "-7", "\"\"", "\"a\\u0062\"", "123456789012345678901234567890"] {
            let message = read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).unwrap();
            assert_eq!(message.id().unwrap().as_str(), id);
        }
        for id in ["1.5", "1e3", "true", "[]", "{}", "null"] {
            let found = read(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).unwrap_err();
            assert!(matches!(found, Malformed::NotAMessage { .. }), "{id}: {found:?}");
        }
    }

    #[test]
    fn duplicate_members_of_envelope_and_params_are_refused() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#,
        ] {
            assert!(matches!(read(text), Err(Malformed::NotAMessage { .. })), "{text}");
        }
    }

    #[test]
    fn newlines_between_tokens_become_spaces_and_nothing_else_changes() {
        let message = read("{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"result\":{\"a\":\n1.0}}").unwrap();
        assert_eq!(message.result(), Some("{\"a\": 1.0}"));
    }

    #[test]
    fn other_texts_are_told_apart() {
        assert_eq!(read("{").unwrap_err(), Malformed::NotJson);
        assert_eq!(parse(vec![0xff, 0xfe]).unwrap_err(), Malformed::NotJson);
        assert_eq!(read(" [ ]").unwrap_err(), Malformed::Batch);
        assert_eq!(read(&"[".repeat(200_000)).unwrap_err(), Malformed::TooDeep);
        assert!(matches!(read("7").unwrap_err(), Malformed::NotAMessage { id: None, .. }));
        assert!(
            matches!(read(r#"{"id":1}"#).unwrap_err(), Malformed::NotAMessage { id: Some(id), .. } if id == "1")
        );
        assert!(
            read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#)
                .unwrap()
                .id()
                .is_none()
        );
    }
}
