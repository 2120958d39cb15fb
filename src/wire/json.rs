//! Objects and arrays as lists of raw texts: what is not asked for is never decoded.
//!
//! `serde_json` checks and skips every value; this file only remembers where each one stands.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::value::RawValue;

/// Why a text is not an object (or array) we are willing to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReadable {
    /// Not JSON (RFC 8259), or not of the expected kind.
    Syntax,
    /// The same member twice: two readers could believe two different things (RFC 8259 §4).
    Duplicate(String),
}

/// One member of an object, with its place in the text.
#[derive(Debug)]
pub struct Member<'a> {
    /// The decoded name.
    pub key: Cow<'a, str>,
    /// From the first character of the name to the last of the value.
    pub span: Range<usize>,
    /// Where the value stands.
    pub value_span: Range<usize>,
    /// The value's own text.
    pub value: &'a str,
}

/// A JSON object as the ordered list of its members. Names are unique. The default is `{}`.
#[derive(Debug)]
pub struct Object<'a> {
    text: &'a str,
    members: Vec<Member<'a>>,
}

impl Default for Object<'_> {
    fn default() -> Self {
        Object { text: "{}", members: Vec::new() }
    }
}

impl<'a> Object<'a> {
    /// Reads `text`, which must be one object and nothing else.
    pub fn read(text: &'a str) -> Result<Self, NotReadable> {
        let mut scan = Scan::new(text);
        let mut members: Vec<Member<'a>> = Vec::with_capacity(8);
        scan.expect(b'{')?;
        if !scan.take(b'}') {
            loop {
                scan.skip_space();
                let (key_text, key_span) = scan.value()?;
                let key = decode_string(key_text).ok_or(NotReadable::Syntax)?;
                scan.expect(b':')?;
                scan.skip_space();
                let (value, value_span) = scan.value()?;
                members.push(Member { key, span: key_span.start..value_span.end, value_span, value });
                if scan.take(b',') {
                    continue;
                }
                scan.expect(b'}')?;
                break;
            }
        }
        scan.end()?;
        refuse_duplicates(&members)?;
        Ok(Object { text, members })
    }

    /// The whole text this object was read from.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The members in the order they stand.
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }

    /// The member of that name.
    pub fn member(&self, key: &str) -> Option<&Member<'a>> {
        self.members.iter().find(|member| member.key == key)
    }

    /// The raw text of a member's value.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.member(key).map(|member| member.value)
    }

    /// A member that is a string, decoded.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        decode_string(self.get(key)?)
    }

    /// A member that is an object. `Ok(None)` when it is absent.
    pub fn object(&self, key: &str) -> Result<Option<Object<'a>>, NotReadable> {
        self.get(key).map(Object::read).transpose()
    }
}

/// The items of a JSON array, as raw texts with their places.
pub fn array_items(text: &str) -> Result<Vec<(&str, Range<usize>)>, NotReadable> {
    let mut scan = Scan::new(text);
    let mut items = Vec::new();
    scan.expect(b'[')?;
    if !scan.take(b']') {
        loop {
            scan.skip_space();
            items.push(scan.value()?);
            if scan.take(b',') {
                continue;
            }
            scan.expect(b']')?;
            break;
        }
    }
    scan.end()?;
    Ok(items)
}

/// Decodes a JSON string, borrowing where nothing is escaped.
pub fn decode_string(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

/// A text as a JSON string.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether objects and arrays nest at most `limit` deep. Looks at brackets outside strings only.
pub fn depth_within(text: &[u8], limit: usize) -> bool {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'"' => rest = after_string(rest),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escape = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + if escape { 2 } else { 1 }..).unwrap_or_default();
        if !escape {
            return rest;
        }
    }
    &[]
}

fn refuse_duplicates(members: &[Member<'_>]) -> Result<(), NotReadable> {
    // Most objects here have a handful of members: comparing them pairwise is cheaper than hashing.
    if members.len() <= 16 {
        for (at, member) in members.iter().enumerate() {
            if members.iter().take(at).any(|earlier| earlier.key == member.key) {
                return Err(NotReadable::Duplicate(member.key.clone().into_owned()));
            }
        }
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(members.len());
    match members.iter().find(|member| !seen.insert(&member.key)) {
        Some(member) => Err(NotReadable::Duplicate(member.key.clone().into_owned())),
        None => Ok(()),
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Scan { text, at: 0 }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.as_bytes().get(self.at) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotReadable> {
        if self.take(byte) { Ok(()) } else { Err(NotReadable::Syntax) }
    }

    fn end(&mut self) -> Result<(), NotReadable> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(NotReadable::Syntax) }
    }

    /// One value, checked and skipped by serde_json.
    fn value(&mut self) -> Result<(&'a str, Range<usize>), NotReadable> {
        let rest = self.text.get(self.at..).ok_or(NotReadable::Syntax)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&'a RawValue>();
        let raw = values.next().and_then(Result::ok).ok_or(NotReadable::Syntax)?.get();
        let span = self.at..self.at + raw.len();
        self.at += values.byte_offset();
        Ok((raw, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_keep_their_own_text_and_place() {
        let text = r#" { "a" : 1.0 , "\u0062":[1, 2] ,"c":{"d":null} } "#;
        let object = Object::read(text).unwrap();
        let seen: Vec<_> = object.members().iter().map(|m| (m.key.as_ref(), m.value)).collect();
        assert_eq!(seen, [("a", "1.0"), ("b", "[1, 2]"), ("c", r#"{"d":null}"#)]);
        for member in object.members() {
            assert_eq!(text.get(member.value_span.clone()), Some(member.value));
        }
    }

    #[test]
    fn a_member_given_twice_is_refused_however_it_is_spelled() {
        let text = r#"{"a":1,"\u0061":2}"#;
        assert_eq!(Object::read(text).unwrap_err(), NotReadable::Duplicate("a".into()));
        let many: String = (0..40).map(|n| format!("\"k{n}\":0,")).collect();
        assert!(Object::read(&format!("{{{many}\"z\":0}}")).is_ok());
        assert!(Object::read(&format!("{{{many}\"k3\":0}}")).is_err());
    }

    #[test]
    fn what_is_not_one_object_is_refused() {
        for text in [
            "",
            "{",
            "[]",
            "{}x",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "{\"a\":01}",
            "{\"a\":1 \"b\":2}",
        ] {
            assert_eq!(Object::read(text).unwrap_err(), NotReadable::Syntax, "{text}");
        }
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert!(depth_within(br#"{"a":"[[[[\"[["}"#, 1));
        assert!(depth_within(b"[[1]]", 2));
        assert!(!depth_within(b"[[1]]", 1));
        assert!(!depth_within("[".repeat(200_000).as_bytes(), 512));
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reading_finds_what_was_written(map in prop::collection::btree_map(any::<String>(), any_json(), 0..8)) {
            let text = serde_json::to_string(&map).unwrap();
            let object = Object::read(&text).unwrap();
            prop_assert_eq!(object.members().len(), map.len());
            for member in object.members() {
                let value: serde_json::Value = serde_json::from_str(member.value).unwrap();
                prop_assert_eq!(Some(&value), map.get(member.key.as_ref()));
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>()) {
            let _ = Object::read(&text);
            let _ = array_items(&text);
            let _ = depth_within(text.as_bytes(), 8);
        }
    }
}
