//! The canonical form of a JSON text: RFC 8785 (JCS), with one deviation: an integer keeps its digits, however many.
//!
//! `docs/surface-hash.md` specifies it; `fixtures/surface/` has vectors that an implementation in another language
//! reproduces.

use std::borrow::Cow;
use std::fmt;

use crate::wire::json;
use crate::wire::parse::MAX_DEPTH;

/// Why a text has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncanonical {
    /// Not JSON, or a string with half of a surrogate pair (RFC 8785 §3.1, I-JSON).
    Syntax,
    /// A member that stands twice in one object.
    Duplicate(String),
    /// A number that no IEEE 754 double can hold.
    OutOfRange(String),
    /// Nested deeper than any message may be.
    TooDeep,
}

impl fmt::Display for Uncanonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncanonical::Syntax => f.write_str("it is not valid JSON text"),
            Uncanonical::Duplicate(key) => write!(f, "the member {} stands twice", json::quote(key)),
            Uncanonical::OutOfRange(number) => write!(f, "the number {number} is out of range"),
            Uncanonical::TooDeep => write!(f, "it nests deeper than {MAX_DEPTH} levels"),
        }
    }
}

/// The canonical form of any JSON text.
///
/// # Errors
/// It has none.
pub fn canonical(text: &str) -> Result<String, Uncanonical> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if !json::depth_within(text.as_bytes(), MAX_DEPTH) {
        return Err(Uncanonical::TooDeep);
    }
    if !json::is_json(text) {
        return Err(Uncanonical::Syntax);
    }
    canonical_of_checked(text)
}

/// The same for a value that was checked as a part of a message, without space around it.
///
/// # Errors
/// It has none.
pub fn canonical_of_checked(text: &str) -> Result<String, Uncanonical> {
    let mut writer = Writer { text, ends: ends(text.as_bytes()), out: String::with_capacity(text.len()) };
    let end = writer.value(0, 0)?;
    if end == text.len() { Ok(writer.out) } else { Err(Uncanonical::Syntax) }
}

/// Where each object and array begins and ends, in the order they begin. With it a value is skipped without being read,
/// so that the time does not grow with the depth.
fn ends(text: &[u8]) -> Vec<(usize, usize)> {
    let (mut ends, mut open): (Vec<(usize, usize)>, _) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'{' | b'[' => {
                open.push(ends.len());
                ends.push((at, text.len()));
            }
            b'}' | b']' => {
                if let Some((_, end)) = open.pop().and_then(|begun| ends.get_mut(begun)) {
                    *end = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    ends
}

/// Where the string ends that begins at `at`.
fn string_end(text: &[u8], at: usize) -> usize {
    at + json::string_length(text.get(at..).unwrap_or_default())
}

/// The names of an object's members, and where their values begin.
type Members<'a> = Vec<(Cow<'a, str>, usize)>;

struct Writer<'a> {
    text: &'a str,
    ends: Vec<(usize, usize)>,
    out: String,
}

impl<'a> Writer<'a> {
    /// Writes the value that begins at `at`; says where it ends.
    fn value(&mut self, at: usize, depth: usize) -> Result<usize, Uncanonical> {
        if depth > MAX_DEPTH {
            return Err(Uncanonical::TooDeep);
        }
        match self.byte(at) {
            Some(b'{') => return self.object(at, depth),
            Some(b'[') => return self.array(at, depth),
            _ => {}
        }
        let end = self.end(at);
        let text = self.text.get(at..end).ok_or(Uncanonical::Syntax)?;
        match text.as_bytes().first() {
            Some(b'"') if memchr::memchr(b'\\', text.as_bytes()).is_none() => self.out.push_str(text),
            Some(b'"') => write_string(&json::decode_string(text).ok_or(Uncanonical::Syntax)?, &mut self.out),
            Some(b't' | b'f' | b'n') => self.out.push_str(text),
            Some(_) => write_number(text, &mut self.out)?,
            None => return Err(Uncanonical::Syntax),
        }
        Ok(end)
    }

    fn object(&mut self, at: usize, depth: usize) -> Result<usize, Uncanonical> {
        let (mut members, end) = self.members(at)?;
        // By UTF-16 code units (RFC 8785 §3.2.3), neither by bytes nor by code points.
        members.sort_by(|(one, _), (other, _)| utf16(one, other));
        let mut last: Option<&str> = None;
        for (key, _) in &members {
            if last.replace(key) == Some(key) {
                return Err(Uncanonical::Duplicate(key.clone().into_owned()));
            }
        }
        self.out.push('{');
        for (position, (key, value)) in members.iter().enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            write_string(key, &mut self.out);
            self.out.push(':');
            self.value(*value, depth + 1)?;
        }
        self.out.push('}');
        Ok(end)
    }

    /// The members of the object that begins at `at`, and where it ends.
    fn members(&self, at: usize) -> Result<(Members<'a>, usize), Uncanonical> {
        let mut members = Vec::with_capacity(8);
        let mut at = self.after_space(at + 1);
        if self.byte(at) == Some(b'}') {
            return Ok((members, at + 1));
        }
        loop {
            let end = self.end(at);
            let key = self.text.get(at..end).and_then(json::decode_string).ok_or(Uncanonical::Syntax)?;
            let colon = self.after_space(end);
            if self.byte(colon) != Some(b':') {
                return Err(Uncanonical::Syntax);
            }
            let value = self.after_space(colon + 1);
            members.push((key, value));
            at = self.after_space(self.end(value));
            match self.byte(at) {
                Some(b',') => at = self.after_space(at + 1),
                Some(b'}') => return Ok((members, at + 1)),
                _ => return Err(Uncanonical::Syntax),
            }
        }
    }

    fn array(&mut self, at: usize, depth: usize) -> Result<usize, Uncanonical> {
        self.out.push('[');
        let mut at = self.after_space(at + 1);
        if self.byte(at) == Some(b']') {
            self.out.push(']');
            return Ok(at + 1);
        }
        loop {
            let end = self.value(at, depth + 1)?;
            at = self.after_space(end);
            match self.byte(at) {
                Some(b',') => self.out.push(','),
                Some(b']') => {
                    self.out.push(']');
                    return Ok(at + 1);
                }
                _ => return Err(Uncanonical::Syntax),
            }
            at = self.after_space(at + 1);
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Where the value ends that begins at `at`.
    fn end(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        match self.byte(at) {
            Some(b'{' | b'[') => match self.ends.binary_search_by_key(&at, |(begin, _)| *begin) {
                Ok(found) => self.ends.get(found).map_or(bytes.len(), |(_, end)| *end),
                Err(_) => bytes.len(),
            },
            Some(b'"') => string_end(bytes, at),
            _ => {
                let rest = bytes.get(at..).unwrap_or_default();
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                at + rest.iter().position(ends).unwrap_or(rest.len())
            }
        }
    }

    fn after_space(&self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or_default();
        let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        at + rest.iter().position(|byte| !space(byte)).unwrap_or(rest.len())
    }
}

/// How two names are ordered: as the texts of their UTF-16 code units.
pub fn utf16(one: &str, other: &str) -> std::cmp::Ordering {
    if one.is_ascii() && other.is_ascii() {
        return one.cmp(other);
    }
    one.encode_utf16().cmp(other.encode_utf16())
}

/// RFC 8785 §3.2.2.2: nothing is escaped but what has to be.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    if !text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            plain => out.push(plain),
        }
    }
    out.push('"');
}

/// An integer keeps its digits; every other number is spelled as ECMAScript spells the double nearest to it
/// (RFC 8785 §3.2.2.3).
fn write_number(text: &str, out: &mut String) -> Result<(), Uncanonical> {
    if !text.contains(['.', 'e', 'E']) {
        out.push_str(if text == "-0" { "0" } else { text });
        return Ok(());
    }
    let number: f64 = text.parse().map_err(|_| Uncanonical::Syntax)?;
    if !number.is_finite() {
        return Err(Uncanonical::OutOfRange(text.chars().take(40).collect()));
    }
    out.push_str(ryu_js::Buffer::new().format_finite(number));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_spelled_as_ecmascript_spells_them() {
        let text = "[333333333.33333329,1E30,4.50,2e-3,1e-27,1e20,1e21,1e-6,1e-7,-0.0,1.0,1e16]";
        assert_eq!(
            canonical(text).unwrap(),
            "[333333333.3333333,1e+30,4.5,0.002,1e-27,100000000000000000000,1e+21,0.000001,1e-7,0,1,10000000000000000]"
        );
    }

    #[test]
    fn integers_keep_their_digits() {
        let text = "[9007199254740993,9007199254740992,123456789012345678901234567890,-0,-7]";
        assert_eq!(
            canonical(text).unwrap(),
            "[9007199254740993,9007199254740992,123456789012345678901234567890,0,-7]"
        );
    }

    #[test]
    fn members_are_sorted_by_utf16_code_units() {
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(
            canonical(text).unwrap(),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn strings_escape_only_what_has_to_be() {
        let text = r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f\u2028""#;
        assert_eq!(canonical(text).unwrap(), "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\u{2028}\"");
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        for (text, why) in [
            (r#"{"a":{"b":1,"\u0062":2}}"#, Uncanonical::Duplicate("b".into())),
            ("[1e400]", Uncanonical::OutOfRange("1e400".into())),
            (r#"["\ud83d"]"#, Uncanonical::Syntax),
            (r#"{"\ud83d":1}"#, Uncanonical::Syntax),
            ("[1,]", Uncanonical::Syntax),
            ("01", Uncanonical::Syntax),
            ("", Uncanonical::Syntax),
            ("1 2", Uncanonical::Syntax),
        ] {
            assert_eq!(canonical(text).unwrap_err(), why, "{text}");
        }
        assert_eq!(canonical(&"[".repeat(600)).unwrap_err(), Uncanonical::TooDeep);
        assert_eq!(canonical_of_checked(&"[".repeat(600)).unwrap_err(), Uncanonical::TooDeep);
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_its_own_canonical_form(text in any::<String>(), number in any::<f64>()) {
            prop_assume!(number.is_finite());
            let value = serde_json::json!({"b": text, "a": [number, null, true], text.clone(): 1});
            let once = canonical(&value.to_string()).unwrap();
            prop_assert_eq!(canonical(&once).unwrap(), once.clone());
            let spelled = canonical(&format!("{number:e}")).unwrap();
            prop_assert_eq!(spelled.parse::<f64>().unwrap(), number);
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = canonical(&text);
            let _ = canonical_of_checked(&text);
            let _ = canonical_of_checked(&format!("{{\"a\":[{text}"));
        }
    }
}
