//! `x-mcp-header`: arguments that a tool wants mirrored in request headers (MCP 2026-07-28 "Streamable HTTP", SEP-2243).

use std::collections::HashMap;

use http::header::HeaderName;
use serde_json::Value;

use crate::wire::{Object, json};

/// An integer beyond this has no exact place in a double.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// The mirrored arguments of all tools.
#[derive(Debug, Default)]
pub struct ParameterHeaders {
    by_tool: HashMap<String, Vec<ParameterHeader>>,
}

#[derive(Debug, PartialEq)]
struct ParameterHeader {
    header: HeaderName,
    path: Vec<String>,
}

impl ParameterHeaders {
    /// Takes a tool in.
    ///
    /// # Errors
    /// Why its annotations are invalid. Such a tool must not be shown (the specification's rule for clients).
    pub fn learn(&mut self, name: &str, tool: &str) -> Result<(), String> {
        let found = annotations(tool)?;
        if !found.is_empty() {
            self.by_tool.insert(name.to_owned(), found);
        }
        Ok(())
    }

    /// Names every header that a call needs, with its value.
    pub fn mirror(&self, tool: &str, arguments: Option<&str>, mut add: impl FnMut(&HeaderName, &str)) {
        let (Some(found), Some(arguments)) = (self.by_tool.get(tool), arguments) else { return };
        for annotation in found {
            if let Some(value) = argument(arguments, &annotation.path) {
                add(&annotation.header, &value);
            }
        }
    }
}

/// The value at a path of members, as header text. `null`, absent and other kinds have none.
fn argument(arguments: &str, path: &[String]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let object = Object::read(arguments).ok()?;
    let value = object.get(first)?;
    if !rest.is_empty() {
        return argument(value, rest);
    }
    match value {
        "true" | "false" => Some(value.to_owned()),
        _ if value.starts_with('"') => json::decode_string(value).map(std::borrow::Cow::into_owned),
        _ => integer(value).map(|number| number.to_string()),
    }
}

/// A JSON number that is an integer in value, whatever its spelling.
fn integer(text: &str) -> Option<i64> {
    let number = match text.parse::<i64>() {
        Ok(number) => number,
        Err(_) => {
            let float =
                text.parse::<f64>().ok().filter(|float| float.fract() == 0.0 && float.abs() < 9.1e15)?;
            #[expect(clippy::cast_possible_truncation, reason = "an integer in value and well within range")]
            let number = float as i64;
            number
        }
    };
    (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&number).then_some(number)
}

fn annotations(tool: &str) -> Result<Vec<ParameterHeader>, String> {
    // Hardly any tool has one, and reading every schema would cost more than the rest of the start.
    if !tool.contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let tool: Value = serde_json::from_str(tool).map_err(|_| "its definition cannot be read".to_owned())?;
    let mut found = Vec::new();
    if let Some(schema) = tool.get("inputSchema") {
        walk(schema, Some(&mut Vec::new()), &mut found)?;
    }
    for (at, annotation) in found.iter().enumerate() {
        if found.iter().take(at).any(|earlier| earlier.header == annotation.header) {
            return Err(format!("x-mcp-header {:?} stands twice", annotation.header.as_str()));
        }
    }
    Ok(found)
}

/// `path` is `None` where a property cannot be reached through `properties` alone.
fn walk(
    schema: &Value,
    path: Option<&mut Vec<String>>,
    found: &mut Vec<ParameterHeader>,
) -> Result<(), String> {
    let Value::Object(members) = schema else { return Ok(()) };
    if let Some(annotation) = members.get("x-mcp-header") {
        let name = annotation.as_str().ok_or("x-mcp-header is not a string")?;
        let path = path.as_deref().filter(|path| !path.is_empty()).ok_or_else(|| {
            format!("x-mcp-header {name:?} stands where no argument can be reached by properties alone")
        })?;
        match members.get("type").and_then(Value::as_str) {
            Some("string" | "integer" | "boolean") => {}
            _ => {
                return Err(format!(
                    "x-mcp-header {name:?} is on a property that is no string, integer or boolean"
                ));
            }
        }
        let header = (!name.is_empty())
            .then(|| HeaderName::try_from(format!("mcp-param-{name}")).ok())
            .flatten()
            .ok_or_else(|| format!("x-mcp-header {name:?} is no HTTP token"))?;
        found.push(ParameterHeader { header, path: path.to_vec() });
    }
    let mut path = path;
    for (keyword, value) in members {
        match keyword.as_str() {
            "properties" => {
                let Value::Object(properties) = value else { continue };
                for (name, property) in properties {
                    if let Some(path) = path.as_deref_mut() {
                        path.push(name.clone());
                        walk(property, Some(path), found)?;
                        path.pop();
                    } else {
                        walk(property, None, found)?;
                    }
                }
            }
            // Data, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => walk_any(value, found)?,
        }
    }
    Ok(())
}

fn walk_any(value: &Value, found: &mut Vec<ParameterHeader>) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| walk_any(item, found)),
        Value::Object(members) => {
            walk(value, None, found)?;
            // `$defs` and the like: a map from names to schemas.
            members
                .values()
                .filter(|member| member.is_object())
                .try_for_each(|member| walk(member, None, found))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learn(schema: &str) -> Result<ParameterHeaders, String> {
        let mut all = ParameterHeaders::default();
        all.learn("t", &format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).map(|()| all)
    }

    fn mirrored(schema: &str, arguments: &str) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        learn(schema)
            .unwrap()
            .mirror("t", Some(arguments), |name, value| seen.push((name.to_string(), value.to_owned())));
        seen
    }

    const NESTED: &str = r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}},"s":{"type":"string","x-mcp-header":"Sector"}}}"#;

    #[test]
    fn arguments_are_found_by_their_path() {
        let all = mirrored(NESTED, r#"{"a":{"b":4.0e1},"s":"\u00e9cho"}"#);
        assert_eq!(all, [("mcp-param-b".into(), "40".into()), ("mcp-param-sector".into(), "écho".into())]);
        assert_eq!(mirrored(NESTED, r#"{"a":{"b":null}}"#), []);
        assert_eq!(mirrored(NESTED, r#"{"a":{"b":9007199254740993}}"#), []);
        assert_eq!(mirrored(NESTED, "{}"), []);
    }

    #[test]
    fn invalid_annotations_are_named() {
        for (schema, why) in [
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#, "no HTTP token"),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#, "no HTTP token"),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":"é"}}}"#, "no HTTP token"),
            (r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#, "no string, integer"),
            (r#"{"properties":{"a":{"x-mcp-header":"A"}}}"#, "no string, integer"),
            (r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#, "not a string"),
            (r#"{"type":"string","x-mcp-header":"A"}"#, "by properties alone"),
            (
                r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
                "by properties alone",
            ),
            (
                r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
                "by properties alone",
            ),
            (r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#, "by properties alone"),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
                "twice",
            ),
        ] {
            let found = learn(schema).unwrap_err();
            assert!(found.contains(why), "{schema}: {found}");
        }
        assert!(
            learn(r#"{"properties":{"x-mcp-header":{"type":"string"}},"default":{"x-mcp-header":1}}"#)
                .is_ok()
        );
    }
}
