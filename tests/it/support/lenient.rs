//! JSON that is valid and yet too much for `Value`: `1e400`, lone surrogate escapes, deep nesting.

use std::collections::BTreeMap;

use serde_json::{Map, Value, value::RawValue};

/// Parses a text; what `Value` cannot hold becomes a string with its text. `None` when it is no JSON at all.
pub fn parse(text: &[u8]) -> Option<Value> {
    at(std::str::from_utf8(text).ok()?, 0)
}

fn at(text: &str, depth: usize) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let inner = |raw: &RawValue| at(raw.get(), depth + 1);
    if depth < 8
        && let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text)
    {
        let members = members.into_iter().map(|(key, value)| Some((key, inner(value)?)));
        return members.collect::<Option<Map<_, _>>>().map(Value::Object);
    }
    Some(Value::from(raw.get()))
}
