//! The canonical form of a JSON text: RFC 8785 (JCS), with one deviation: an integer keeps its digits, however many.
//!
//! `docs/surface-hash.md` specifies it; `fixtures/surface/` has vectors that an implementation in another language
//! reproduces.

use std::fmt;

use crate::wire::json::{self, NotReadable, Object};
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

impl From<NotReadable> for Uncanonical {
    fn from(wrong: NotReadable) -> Self {
        match wrong {
            NotReadable::Syntax => Uncanonical::Syntax,
            NotReadable::Duplicate(key) => Uncanonical::Duplicate(key),
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
    let mut out = String::with_capacity(text.len());
    write(text, &mut out)?;
    Ok(out)
}

fn write(text: &str, out: &mut String) -> Result<(), Uncanonical> {
    match text.as_bytes().first() {
        Some(b'{') => {
            let object = Object::read_checked(text)?;
            let mut members: Vec<_> = object.members().collect();
            // By UTF-16 code units (RFC 8785 §3.2.3), neither by bytes nor by code points.
            members.sort_by(|a, b| utf16(&a.key, &b.key));
            out.push('{');
            for (at, member) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(&member.key, out);
                out.push(':');
                write(member.value, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            out.push('[');
            for (at, (item, _)) in json::array_items_checked(text)?.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Some(b'"') if memchr::memchr(b'\\', text.as_bytes()).is_none() => out.push_str(text),
        Some(b'"') => write_string(&json::decode_string(text).ok_or(Uncanonical::Syntax)?, out),
        Some(b't' | b'f' | b'n') => out.push_str(text),
        _ => write_number(text, out)?,
    }
    Ok(())
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
        }
    }
}
