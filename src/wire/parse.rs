//! The one door for JSON from outside: size is bounded by the reader, here depth, members and ids are.

use std::borrow::Cow;

use super::json::{self, NotReadable, Object};
use super::message::{Id, Message, Part, Sort};
use super::skim::Skim;

/// How deep objects and arrays may nest. Real messages stay below 30; readers that recurse break at some thousands.
pub const MAX_DEPTH: usize = 512;

/// Why a text is not a JSON-RPC 2.0 message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not UTF-8, or not JSON (JSON-RPC 2.0 §5.1: -32700).
    NotJson,
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep {
        /// The id's own text, where one could be found.
        id: Option<String>,
    },
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
        put_on_one_line(&mut bytes);
    }
    if !json::depth_within(&bytes, MAX_DEPTH) {
        return Err(Malformed::TooDeep { id: skimmed(&bytes) });
    }
    let text = String::from_utf8(bytes).map_err(|_| Malformed::NotJson)?;
    if text.trim_start().starts_with('[') {
        return match json::array_items(&text) {
            Ok(_) => Err(Malformed::Batch),
            Err(_) => Err(Malformed::NotJson),
        };
    }
    let (id, method, sort, payload, meta) = envelope(&text)?;
    Ok(Message { text, id, method, sort, payload, meta })
}

/// Newlines between tokens become spaces. One inside a string stays, where it makes the text invalid.
fn put_on_one_line(bytes: &mut [u8]) {
    let (mut in_string, mut escaped) = (false, false);
    for byte in bytes {
        match *byte {
            b'\n' | b'\r' if !in_string => *byte = b' ',
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
}

/// The id of a message that cannot be read as a whole.
fn skimmed(bytes: &[u8]) -> Option<String> {
    let mut skim = Skim::default();
    skim.feed(bytes);
    skim.into_id()
}

type Envelope = (Option<Id>, Option<String>, Sort, Option<Part>, Option<Part>);

fn envelope(text: &str) -> Result<Envelope, Malformed> {
    let object = match Object::read(text) {
        Ok(object) => object,
        Err(NotReadable::Duplicate(key)) => {
            return Err(Malformed::NotAMessage {
                why: format!("member {} stands twice", json::quote(&key)),
                id: if key == "id" { None } else { skimmed(text.as_bytes()) },
            });
        }
        Err(NotReadable::Syntax) => {
            let other_json = json::is_json(text);
            return Err(match other_json {
                true => Malformed::NotAMessage { why: "a message is an object".into(), id: None },
                false => Malformed::NotJson,
            });
        }
    };
    let id = object.member("id");
    let wrong = |why: &str| Malformed::NotAMessage {
        why: why.into(),
        id: id.as_ref().map(|id| id.value).filter(|value| is_scalar(value)).map(str::to_owned),
    };
    if object.string("jsonrpc").as_deref() != Some("2.0") {
        return Err(wrong("member \"jsonrpc\" must be \"2.0\""));
    }
    let method = match object.get("method") {
        None => None,
        Some(method) => {
            Some(json::decode_string(method).ok_or_else(|| wrong("member \"method\" must be a string"))?)
        }
    };
    let (sort, payload) = match (&method, object.member("result"), object.member("error")) {
        (Some(_), None, None) => (Sort::Call, object.member("params")),
        (None, Some(result), None) => (Sort::Result, Some(result)),
        (None, None, Some(error)) => (Sort::Error, Some(error)),
        (None, None, None) => return Err(wrong("neither method nor result nor error")),
        _ => return Err(wrong("more than one of method, result and error")),
    };
    let id = match (id.as_ref().map(|id| id.value), sort) {
        (Some(value), _) if is_id(value) => Some(Id::from_json(value)),
        // An error may say that it could not tell which request it belongs to (JSON-RPC 2.0 §5).
        (Some("null") | None, Sort::Error) | (None, Sort::Call) => None,
        (None, _) => return Err(wrong("an answer needs an id")),
        _ => return Err(wrong("an id is a string or an integer")),
    };
    let Some(payload) = payload else { return Ok((id, method.map(Cow::into_owned), sort, None, None)) };
    let what = match sort {
        Sort::Call => "params",
        Sort::Result => "result",
        Sort::Error => "error",
    };
    let payload = part(payload.value, payload.value_span.start, what).map_err(|why| wrong(&why))?;
    // Two readers must not be able to see two different `_meta`.
    let meta =
        Object::known(text.get(payload.span.clone()).unwrap_or_default(), &payload.places).member("_meta");
    let meta = meta
        .filter(|_| sort != Sort::Error)
        .map(|meta| {
            part(meta.value, payload.span.start + meta.value_span.start, "_meta").map_err(|why| wrong(&why))
        })
        .transpose()?;
    Ok((id, method.map(Cow::into_owned), sort, Some(payload), meta))
}

/// `text` is the value of a member of an object that was read.
fn part(text: &str, at: usize, what: &str) -> Result<Part, String> {
    match json::places_in_checked(text) {
        Ok(places) => Ok(Part { span: at..at + text.len(), places }),
        Err(NotReadable::Duplicate(key)) => {
            Err(format!("member {} of {what} stands twice", json::quote(&key)))
        }
        Err(NotReadable::Syntax) => Err(format!("{what} must be an object")),
    }
}

/// MCP allows strings and integers; an integer may have any number of digits.
pub(super) fn is_id(value: &str) -> bool {
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
    fn members_that_stand_twice_and_payloads_that_are_no_objects_are_refused() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":1,"a":2}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1,"\u0061":2}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
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
        assert_eq!(read(&"[".repeat(200_000)).unwrap_err(), Malformed::TooDeep { id: None });
        assert_eq!(
            read("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}").unwrap_err(),
            Malformed::NotJson
        );
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
