//! How most tests begin: an endpoint, the program, and a harness that has opened.

use std::collections::BTreeMap;

use serde_json::{Value, json, value::RawValue};

use crate::support::{Answer, Endpoint, EndpointBuilder, Era, Harness, Recorded};

/// Both eras, for tests that leave one side open.
pub const BOTH: [Era; 2] = [Era::Modern, Era::Legacy];
/// The capabilities of a harness that can show forms.
pub const FORMS: &str = r#"{"elicitation":{"form":{}}}"#;
/// The `_meta` of a modern request.
pub const ENVELOPE: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test-harness","version":"1.0.0"}}"#;

/// A harness of that era that can do nothing in particular, opened.
pub async fn opened(era: Era, endpoint: EndpointBuilder) -> (Harness, Endpoint) {
    opened_with(era, endpoint, "{}", &[]).await
}

/// A harness of that era with those capabilities, opened; the program gets those arguments.
pub async fn opened_with(
    era: Era,
    endpoint: EndpointBuilder,
    capabilities: &str,
    args: &[&str],
) -> (Harness, Endpoint) {
    let endpoint = endpoint.start().await;
    let mut harness = Harness::start(&endpoint.url(), args);
    let opening = harness.open(era, capabilities).await;
    assert!(!opening.is_error(), "{}", opening.text());
    (harness, endpoint)
}

/// A request line of that era. `members` are those of `params`, without the braces.
pub fn line(era: Era, id: &str, method: &str, members: &str) -> String {
    let meta = match era {
        Era::Modern => format!(r#""_meta":{ENVELOPE}"#),
        Era::Legacy => String::new(),
    };
    let comma = if members.is_empty() || meta.is_empty() { "" } else { "," };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}{comma}{meta}}}}}"#)
}

/// Sends a line and waits for the answer with that id.
pub async fn exchange(harness: &mut Harness, id: &str, line: &str) -> Answer {
    harness.send_line(line.as_bytes()).await;
    harness.answer_to(id).await
}

/// A result of that era with those members.
pub fn complete(era: Era, members: &str) -> String {
    match era {
        Era::Modern => format!(r#"{{"resultType":"complete",{members}}}"#),
        Era::Legacy => format!("{{{members}}}"),
    }
}

/// The same for the methods whose modern results say how long they hold.
pub fn cacheable(era: Era, members: &str) -> String {
    match era {
        Era::Modern => complete(era, &format!(r#"{members},"ttlMs":0,"cacheScope":"private""#)),
        Era::Legacy => complete(era, members),
    }
}

/// The text block of a tool's result.
pub fn text(answer: &Answer) -> String {
    answer.result()["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}

/// The names in a list.
pub fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

/// An error's code.
pub fn code(answer: &Answer) -> i64 {
    answer.error()["code"].as_i64().unwrap()
}

/// The exact texts of the members of a request's `params._meta`.
pub fn meta_raw(request: &Recorded) -> BTreeMap<String, String> {
    let member = |text: &str, name: &str| {
        let object: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
        object.get(name).map(|value| value.get().to_owned())
    };
    let body = std::str::from_utf8(&request.body).unwrap();
    let meta = member(body, "params").and_then(|params| member(&params, "_meta"));
    let meta: BTreeMap<String, Box<RawValue>> =
        meta.map(|meta| serde_json::from_str(&meta).unwrap()).unwrap_or_default();
    meta.into_iter().map(|(key, value)| (key, value.get().to_owned())).collect()
}

/// What the endpoint knew of the client's capabilities when that request came.
pub fn declared(endpoint: &Endpoint, request: &Recorded) -> Value {
    match endpoint.requests_of("initialize").last() {
        Some(initialize) => initialize.param("capabilities").clone(),
        None => request.param("_meta")["io.modelcontextprotocol/clientCapabilities"].clone(),
    }
}

/// Waits for the response that the program posts to a request of the endpoint.
pub async fn posted(endpoint: &Endpoint, id: &Value) -> Value {
    let fits = |request: &Recorded| request.is_response() && request.json["id"] == *id;
    endpoint.wait_for(|all| all.iter().any(fits)).await;
    endpoint.requests().into_iter().find(fits).unwrap().json
}

/// Closes stdin and sees the program out.
pub async fn leave(harness: &mut Harness) {
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0, "{}", harness.stderr_text());
}

/// Asserts that the error is the program's own and says so to programs.
pub fn assert_own(answer: &Answer) {
    let error = answer.error();
    assert_eq!(error["code"], json!(-32603), "{error}");
    assert!(error["data"]["reason"].is_string(), "{error}");
}

/// Asserts that the error is the program's own, for that reason.
pub fn assert_reason(answer: &Answer, reason: &str) {
    let error = answer.error();
    assert_eq!(error["code"], json!(-32603), "{error}");
    assert_eq!(error["data"]["reason"], json!(reason), "{error}");
}
