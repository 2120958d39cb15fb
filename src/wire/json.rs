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

/// Where a member of an object stands in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name, quotes included.
    key: Range<usize>,
    /// The name has escapes, so it is not its own text.
    escaped: bool,
    value: Range<usize>,
}

/// One member of an object.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub struct Object<'a> {
    text: &'a str,
    places: Cow<'a, [Place]>,
}

impl Default for Object<'_> {
    fn default() -> Self {
        Object { text: "{}", places: Cow::Borrowed(&[]) }
    }
}

impl<'a> Object<'a> {
    /// Reads `text`, which must be one object and nothing else.
    ///
    /// # Errors
    /// It is not, or a member stands twice.
    pub fn read(text: &'a str) -> Result<Self, NotReadable> {
        places(text).map(|places| Object { text, places: Cow::Owned(places) })
    }

    /// The same for a text that was checked as a part of what holds it, so that it only has to be skipped now.
    ///
    /// # Errors
    /// It is no object, or a member stands twice.
    pub fn read_checked(text: &'a str) -> Result<Self, NotReadable> {
        places_in_checked(text).map(|places| Object { text, places: Cow::Owned(places) })
    }

    /// An object whose places are known.
    pub(super) fn known(text: &'a str, places: &'a [Place]) -> Self {
        Object { text, places: Cow::Borrowed(places) }
    }

    /// The whole text this object was read from.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it is `{}`.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The members in the order they stand.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Member<'a>> {
        self.places.iter().map(|place| member(self.text, place))
    }

    /// The member of that name.
    pub fn member(&self, key: &str) -> Option<Member<'a>> {
        self.places.iter().find(|place| is_named(self.text, place, key)).map(|place| member(self.text, place))
    }

    /// The raw text of a member's value.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let place = self.places.iter().find(|place| is_named(self.text, place, key))?;
        self.text.get(place.value.clone())
    }

    /// A member that is a string, decoded.
    pub fn string(&self, key: &str) -> Option<Cow<'a, str>> {
        decode_string(self.get(key)?)
    }

    /// A member that is an object. `Ok(None)` when it is absent.
    ///
    /// # Errors
    /// It is there and is none.
    pub fn object(&self, key: &str) -> Result<Option<Object<'a>>, NotReadable> {
        self.get(key).map(Object::read).transpose()
    }
}

/// Finds the members of an object.
pub(super) fn places(text: &str) -> Result<Vec<Place>, NotReadable> {
    members(Scan::new(text))
}

/// The same for a value that was checked as a part of what holds it, so that it only has to be skipped now.
pub(super) fn places_in_checked(text: &str) -> Result<Vec<Place>, NotReadable> {
    members(Scan { checked: true, ..Scan::new(text) })
}

fn members(mut scan: Scan<'_>) -> Result<Vec<Place>, NotReadable> {
    let text = scan.text;
    let mut places = Vec::with_capacity(8);
    scan.expect(b'{')?;
    if !scan.take(b'}') {
        loop {
            scan.skip_space();
            let (key, escaped) = scan.key()?;
            scan.expect(b':')?;
            scan.skip_space();
            let (_, value) = scan.value()?;
            places.push(Place { key, escaped, value });
            if scan.take(b',') {
                continue;
            }
            scan.expect(b'}')?;
            break;
        }
    }
    scan.end()?;
    refuse_duplicates(text, &places)?;
    Ok(places)
}

fn member<'a>(text: &'a str, place: &Place) -> Member<'a> {
    Member {
        key: name(text, place),
        span: place.key.start..place.value.end,
        value_span: place.value.clone(),
        value: text.get(place.value.clone()).unwrap_or_default(),
    }
}

fn name<'a>(text: &'a str, place: &Place) -> Cow<'a, str> {
    let quoted = text.get(place.key.clone()).unwrap_or_default();
    if place.escaped {
        return decode_string(quoted).unwrap_or_default();
    }
    Cow::Borrowed(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default())
}

fn is_named(text: &str, place: &Place, key: &str) -> bool {
    if place.escaped {
        return name(text, place) == key;
    }
    place.key.len() == key.len() + 2
        && text.as_bytes().get(place.key.start + 1..place.key.end - 1) == Some(key.as_bytes())
}

/// Whether a text is one JSON value.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The items of a JSON array, as raw texts with their places.
///
/// # Errors
/// It is no array.
pub fn array_items(text: &str) -> Result<Vec<(&str, Range<usize>)>, NotReadable> {
    items(Scan::new(text))
}

/// The same for a text that was checked as a part of what holds it.
///
/// # Errors
/// It is no array.
pub fn array_items_checked(text: &str) -> Result<Vec<(&str, Range<usize>)>, NotReadable> {
    items(Scan { checked: true, ..Scan::new(text) })
}

fn items(mut scan: Scan<'_>) -> Result<Vec<(&str, Range<usize>)>, NotReadable> {
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
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\');
    if !plain {
        return serde_json::Value::from(text).to_string();
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    quoted.push_str(text);
    quoted.push('"');
    quoted
}

/// How long the value is that stands at the beginning of a checked text.
fn checked_length(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        match byte {
            // The end of what holds it, or of a number or a word.
            b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => break,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        rest = if byte == b'"' { rest.get(string_length(rest)..).unwrap_or_default() } else { tail };
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            break;
        }
    }
    text.len() - rest.len()
}

/// Whether objects and arrays nest at most `limit` deep. Looks at brackets outside strings only; a text that is no
/// longer than the limit has too few of them.
pub fn depth_within(text: &[u8], limit: usize) -> bool {
    if text.len() <= limit {
        return true;
    }
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let whole = std::mem::replace(&mut rest, tail);
        match byte {
            b'"' => rest = whole.get(string_length(whole)..).unwrap_or_default(),
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

/// How long the string is that a text begins with, quotes included; all of it where it has no end.
pub fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

fn refuse_duplicates(text: &str, places: &[Place]) -> Result<(), NotReadable> {
    // Most objects here have a handful of members: comparing them pairwise is cheaper than hashing.
    if places.len() <= 16 {
        for (at, place) in places.iter().enumerate() {
            let key = name(text, place);
            if places.iter().take(at).any(|earlier| is_named(text, earlier, &key)) {
                return Err(NotReadable::Duplicate(key.into_owned()));
            }
        }
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(places.len());
    match places.iter().map(|place| name(text, place)).find(|key| !seen.insert(key.clone())) {
        Some(key) => Err(NotReadable::Duplicate(key.into_owned())),
        None => Ok(()),
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    checked: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Scan { text, at: 0, checked: false }
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

    /// A member's name, and whether it has escapes.
    fn key(&mut self) -> Result<(Range<usize>, bool), NotReadable> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let plain = match rest.split_first() {
            Some((b'"', inner)) => memchr::memchr2(b'"', b'\\', inner)
                .filter(|&end| inner.get(end) == Some(&b'"'))
                .filter(|&end| inner.iter().take(end).all(|&byte| byte >= b' ')),
            _ => None,
        };
        if let Some(length) = plain {
            let span = self.at..self.at + length + 2;
            self.at = span.end;
            return Ok((span, false));
        }
        let (text, span) = self.value()?;
        decode_string(text).map(|_| (span, true)).ok_or(NotReadable::Syntax)
    }

    /// One value, checked and skipped by serde_json if that was not done before.
    fn value(&mut self) -> Result<(&'a str, Range<usize>), NotReadable> {
        let rest = self.text.get(self.at..).ok_or(NotReadable::Syntax)?;
        if self.checked {
            let span = self.at..self.at + checked_length(rest.as_bytes());
            self.at = span.end;
            return self.text.get(span.clone()).map(|value| (value, span)).ok_or(NotReadable::Syntax);
        }
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
        let seen: Vec<_> = object.members().map(|m| (m.key.into_owned(), m.value)).collect();
        assert_eq!(seen, [("a".into(), "1.0"), ("b".into(), "[1, 2]"), ("c".into(), r#"{"d":null}"#)]);
        assert_eq!(object.get("b"), Some("[1, 2]"));
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
            prop_assert_eq!(object.len(), map.len());
            for member in object.members() {
                let value: serde_json::Value = serde_json::from_str(member.value).unwrap();
                prop_assert_eq!(Some(&value), map.get(member.key.as_ref()));
            }
        }

        #[test]
        fn what_was_checked_is_skipped_to_the_same_places(
            map in prop::collection::btree_map(any::<String>(), any_json(), 0..8),
            pretty in any::<bool>(),
        ) {
            let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let text = write(&map).unwrap();
            prop_assert_eq!(places_in_checked(&text), places(&text));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>()) {
            let _ = Object::read(&text);
            let _ = places_in_checked(&text);
            let _ = places_in_checked(&format!("{{\"a\":{text}"));
            let _ = array_items(&text);
            let _ = depth_within(text.as_bytes(), 8);
        }
    }
}
