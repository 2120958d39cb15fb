//! What a tool or a resource returned, as the JSON object that it stands for.

use serde_json::{Map, Value};

/// A status is no larger, in bytes of its result.
const LARGEST: usize = 256 * 1024;

/// The object that a tool returned: `structuredContent`, else the first text that is one (MCP "Tools"). `None`: an error, or
/// nothing of the kind.
pub fn of_tool(result: &str) -> Option<Map<String, Value>> {
    let mut result = read(result)?;
    if result.get("isError") == Some(&Value::Bool(true)) {
        return None;
    }
    if let Some(Value::Object(object)) = result.remove("structuredContent") {
        return Some(object);
    }
    let content = result.get("content")?.as_array()?;
    content.iter().find_map(|item| read(item.get("text")?.as_str()?))
}

/// The object that a resource holds: the first of `contents` that is JSON text (MCP "Resources").
pub fn of_resource(result: &str) -> Option<Map<String, Value>> {
    let result = read(result)?;
    let contents = result.get("contents")?.as_array()?;
    contents.iter().find_map(|item| read(item.get("text")?.as_str()?))
}

/// The resources of a page: URI and name.
pub fn listed(result: &str) -> (Vec<(String, String)>, Option<String>) {
    let Some(result) = read(result) else { return (Vec::new(), None) };
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let items = result.get("resources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let resources = items.iter().filter_map(|item| Some((text(item, "uri")?, text(item, "name")?))).collect();
    (resources, result.get("nextCursor").and_then(Value::as_str).map(str::to_owned))
}

fn read(text: &str) -> Option<Map<String, Value>> {
    if text.len() > LARGEST {
        return None;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_content_comes_before_text_and_errors_are_nothing() {
        let phase = |result: &str| of_tool(result)?.get("phase")?.as_str().map(str::to_owned);
        let text = r#"{"content":[{"type":"text","text":"hi"},{"type":"text","text":"{\"phase\":\"b\"}"}]}"#;
        assert_eq!(phase(text).as_deref(), Some("b"));
        assert_eq!(phase(r#"{"content":[],"structuredContent":{"phase":"a"}}"#).as_deref(), Some("a"));
        for nothing in [
            r#"{"isError":true,"structuredContent":{"phase":"a"}}"#,
            r#"{"content":[{"type":"text","text":"no JSON"}]}"#,
            r#"{"content":5}"#,
            "[]",
            "",
        ] {
            assert_eq!(phase(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn a_resource_is_its_first_json_text_of_a_bounded_size() {
        let phase = |text: &str| {
            let result =
                serde_json::json!({"contents": [{"uri": "a", "blob": "eA=="}, {"uri": "a", "text": text}]});
            of_resource(&result.to_string()).map(|object| object.len())
        };
        assert_eq!(phase(r#"{"phase":"a"}"#), Some(1));
        assert_eq!(phase("not JSON"), None);
        assert_eq!(phase("[1]"), None);
        assert_eq!(phase(&format!(r#"{{"x":"{}"}}"#, "x".repeat(10_000_000))), None);
    }
}
