//! The headers of a modern endpoint that repeat what is in the body: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*`.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    opened::{BOTH, code, names, opened},
    support::{Endpoint, EndpointBuilder, Recorded, Reply},
};

fn wrapped(text: &str) -> String {
    format!("=?base64?{}?=", STANDARD.encode(text))
}

fn tool(name: &str, schema: &str) -> String {
    format!(r#"{{"name":{},"inputSchema":{schema}}}"#, Value::from(name))
}

/// Names and URIs, with the header that each becomes.
fn spellings() -> Vec<(&'static str, String)> {
    let plain = ["move_unit", "a b", "x=?base64?eA==?=", "=?base64?eA==", "~!*'();:@&"];
    let odd = ["café", " x", "x ", "a\tb", "a\nb", "\u{7f}", "", "=?base64?eA==?=", "日本語", "👩‍🚀"];
    let mut all: Vec<_> = plain.into_iter().map(|name| (name, name.to_owned())).collect();
    all.extend(odd.into_iter().filter(|name| !name.is_empty()).map(|name| (name, wrapped(name))));
    all
}

#[tokio::test]
async fn the_name_of_a_tool_is_repeated_in_a_header_that_any_name_survives() {
    let spellings = spellings();
    let tools: Vec<_> = spellings.iter().map(|(name, _)| tool(name, r#"{"type":"object"}"#)).collect();
    for harness_era in BOTH {
        let endpoint = Endpoint::modern().tools(&format!("[{}]", tools.join(",")));
        let (mut harness, endpoint) =
            opened(harness_era, endpoint.on("tools/call", |_| Reply::text("ok"))).await;
        for (nth, (name, header)) in spellings.iter().enumerate() {
            let answer =
                harness.ask("tools/call", &json!({ "name": name, "arguments": {} }).to_string()).await;
            assert!(!answer.is_error(), "{}", answer.text());
            let call = endpoint.arrived("tools/call", nth).await;
            assert_eq!(call.header("mcp-name"), Some(header.as_str()), "{name:?}");
            assert_eq!(call.header("mcp-method"), Some("tools/call"));
        }
    }
}

#[tokio::test]
async fn the_name_of_a_prompt_and_the_uri_of_a_resource_are_repeated_alike() {
    let prompts: Vec<_> = spellings().iter().map(|(name, _)| json!({ "name": name })).collect();
    let prompt = r#"{"resultType":"complete","messages":[]}"#;
    let memo = r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}"#;
    for harness_era in BOTH {
        let endpoint = Endpoint::modern().prompts(&Value::from(prompts.clone()).to_string());
        let endpoint = endpoint
            .on("prompts/get", move |_| Reply::result(prompt))
            .on("resources/read", move |_| Reply::result(memo));
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        for (nth, (name, header)) in spellings().iter().enumerate() {
            harness.ask("prompts/get", &json!({ "name": name }).to_string()).await;
            harness.ask("resources/read", &json!({ "uri": name }).to_string()).await;
            for method in ["prompts/get", "resources/read"] {
                let request = endpoint.arrived(method, nth).await;
                assert_eq!(request.header("mcp-name"), Some(header.as_str()), "{method} {name:?}");
            }
        }
    }
}

const MOVE: &str = r#"{"type":"object","properties":{
    "sector":{"type":"string","x-mcp-header":"Sector"},
    "unit":{"type":"object","properties":{
        "speed":{"type":"integer","x-mcp-header":"Unit-Speed"},
        "deeper":{"type":"object","properties":{"tag":{"type":"string","x-mcp-header":"tag"}}}}},
    "fast":{"type":"boolean","x-mcp-header":"Fast"},
    "note":{"type":"string"}}}"#;

fn moving() -> EndpointBuilder {
    let schema = MOVE.replace('\n', " ");
    Endpoint::modern()
        .tools(&format!("[{}]", tool("move", &schema)))
        .on("tools/call", |_| Reply::text("moved"))
}

fn parameters(request: &Recorded) -> BTreeMap<&str, &str> {
    let of =
        |(name, value): &'_ (String, String)| name.starts_with("mcp-param-").then(|| value.clone()).is_some();
    let found = request.headers.iter().filter(|header| of(header));
    found.map(|(name, value)| (name.trim_start_matches("mcp-param-"), value.as_str())).collect()
}

#[tokio::test]
async fn arguments_that_ask_for_it_are_repeated_in_headers() {
    let odd = [wrapped(" x"), wrapped("=?base64?eA==?="), wrapped("a\tb"), wrapped("écho"), wrapped("日本")];
    let cases: [(Value, &[(&str, &str)]); 13] = [
        (json!({"sector":"north","note":"x"}), &[("sector", "north")]),
        (json!({"sector":"a b"}), &[("sector", "a b")]),
        (json!({"sector":" x"}), &[("sector", &odd[0])]),
        (json!({"sector":"=?base64?eA==?="}), &[("sector", &odd[1])]),
        (json!({"sector":"a\tb"}), &[("sector", &odd[2])]),
        (json!({"sector":"écho","fast":false}), &[("fast", "false"), ("sector", &odd[3])]),
        (json!({"unit":{"speed":-3}}), &[("unit-speed", "-3")]),
        (json!({"unit":{"speed":0,"deeper":{"tag":"日本"}}}), &[("tag", &odd[4]), ("unit-speed", "0")]),
        (json!({"unit":{"speed":9_007_199_254_740_991_i64}}), &[("unit-speed", "9007199254740991")]),
        (json!({"fast":true,"unit":{}}), &[("fast", "true")]),
        (json!({"sector":null,"unit":{"speed":null},"fast":null}), &[]),
        (json!({"unit":null,"note":"sector"}), &[]),
        (json!({}), &[]),
    ];
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, moving()).await;
        for (nth, (arguments, expected)) in cases.iter().enumerate() {
            let answer = harness.call("move", &arguments.to_string()).await;
            assert!(!answer.is_error(), "{}", answer.text());
            let call = endpoint.arrived("tools/call", nth).await;
            assert_eq!(call.param("arguments"), arguments);
            assert_eq!(parameters(&call), BTreeMap::from_iter(expected.iter().copied()), "{arguments}");
        }
    }
}

#[tokio::test]
async fn an_empty_argument_is_present_and_a_call_without_arguments_has_none() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, moving()).await;
        harness.call("move", r#"{"sector":""}"#).await;
        harness.ask("tools/call", r#"{"name":"move"}"#).await;
        let call = endpoint.arrived("tools/call", 0).await;
        assert!(["", "=?base64??="].contains(&parameters(&call)["sector"]), "{:?}", call.headers);
        assert_eq!(parameters(&endpoint.arrived("tools/call", 1).await), BTreeMap::new());
    }
}

/// Schemas whose `x-mcp-header` breaks a rule.
const INVALID: [(&str, &str); 16] = [
    ("empty", r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#),
    ("space", r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#),
    ("colon", r#"{"properties":{"a":{"type":"string","x-mcp-header":"a:b"}}}"#),
    ("slash", r#"{"properties":{"a":{"type":"string","x-mcp-header":"a/b"}}}"#),
    ("umlaut", r#"{"properties":{"a":{"type":"string","x-mcp-header":"ä"}}}"#),
    ("line", r#"{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}"#),
    ("no_text", r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#),
    ("number", r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#),
    ("object", r#"{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}"#),
    ("untyped", r#"{"properties":{"a":{"x-mcp-header":"A"}}}"#),
    (
        "twice",
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"sAME"}}}}}"#,
    ),
    ("items", r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#),
    ("any_of", r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#),
    ("if", r#"{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#),
    (
        "defs",
        r##"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/d"}}}"##,
    ),
    ("additional", r#"{"additionalProperties":{"type":"string","x-mcp-header":"A"}}"#),
];

#[tokio::test]
async fn a_tool_with_invalid_header_marks_is_left_out_and_named_and_the_others_stay() {
    let typed = |schema: &str| schema.replacen('{', r#"{"type":"object","#, 1);
    let mut tools: Vec<_> =
        INVALID.iter().map(|(name, schema)| tool(&format!("bad_{name}"), &typed(schema))).collect();
    tools.insert(8, tool("good", &MOVE.replace('\n', " ")));
    // data that only looks like a mark
    let looks =
        r#"{"type":"object","properties":{"x-mcp-header":{"type":"number","default":{"x-mcp-header":""}}}}"#;
    tools.push(tool("odd", looks));
    for harness_era in BOTH {
        let endpoint = Endpoint::modern().tools(&format!("[{}]", tools.join(",")));
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        let served = harness.ask("tools/list", "{}").await.result();
        assert_eq!(names(&served["tools"]), ["good", "odd"]);
        for (name, _) in INVALID {
            let name = format!("bad_{name}");
            assert_eq!(code(&harness.call(&name, "{}").await), -32602);
            harness.wait_stderr(&name).await;
        }
        assert!(endpoint.requests_of("tools/call").is_empty());
    }
}
