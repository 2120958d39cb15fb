//! What one era has and the other has not: openings, results and schemas on their way across.

use serde_json::{Value, json};

use crate::{
    opened::{cacheable, complete, names, opened, text},
    support::{Answer, Endpoint, EndpointBuilder, Era, LEGACY, MODERN, Reply, four_eras},
};

const INFO: &str =
    r#"{"name":"fake","title":"Fäke","version":"1.0.0","websiteUrl":"https://a.example","x":[1e3]}"#;
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

four_eras!(the_opening_keeps_what_the_endpoint_says_of_itself, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era)
        .instructions("Be brief.\nSei höflich. \u{1f680}")
        .server_info(INFO)
        .meta(r#""com.example/stamp":"abc","surfaceHash":"0f""#)
        .capabilities(r#"{"tools":{},"experimental":{"com.example/x":{"deep":[1.0,null]}}}"#);
    let endpoint = endpoint.start().await;
    let mut harness = crate::support::Harness::start(&endpoint.url(), &[]);
    let opening = harness.open(harness_era, "{}").await.result();
    let info: Value = serde_json::from_str(INFO).unwrap();
    assert_eq!(opening["instructions"], "Be brief.\nSei höflich. \u{1f680}");
    assert_eq!(opening["_meta"]["com.example/stamp"], "abc");
    assert_eq!(opening["_meta"]["surfaceHash"], "0f");
    assert_eq!(opening["capabilities"]["experimental"], json!({"com.example/x":{"deep":[1.0,null]}}));
    match harness_era {
        Era::Modern => {
            assert_eq!(opening["_meta"][SERVER_INFO], info);
            assert_eq!(opening["resultType"], "complete");
            assert_eq!(opening["supportedVersions"], json!([MODERN]));
            assert!(opening["ttlMs"].is_u64(), "{opening}");
            assert_eq!(opening["cacheScope"], "private");
            assert_absent(&opening, &["protocolVersion", "serverInfo"]);
        }
        Era::Legacy => {
            assert_eq!(opening["serverInfo"], info);
            assert_eq!(opening["protocolVersion"], LEGACY);
            assert_absent(&opening, &["resultType", "supportedVersions", "ttlMs", "cacheScope"]);
        }
    }
});

four_eras!(an_endpoint_without_instructions_gets_none, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).no_instructions().start().await;
    let mut harness = crate::support::Harness::start(&endpoint.url(), &[]);
    let opening = harness.open(harness_era, "{}").await.result();
    assert_absent(&opening, &["instructions"]);
});

four_eras!(what_the_program_does_not_keep_is_not_promised, |harness_era, endpoint_era| async {
    let offered = r#"{"tools":{"listChanged":true,"x":1},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{},"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/y":{},"io.modelcontextprotocol/skills":{}}}"#;
    let endpoint = Endpoint::era(endpoint_era)
        .capabilities(offered)
        .on("skills/list", move |_| Reply::result(cacheable(endpoint_era, r#""skills":[]"#)));
    let endpoint = endpoint.start().await;
    let mut harness = crate::support::Harness::start(&endpoint.url(), &[]);
    let opening = harness.open(harness_era, "{}").await.result();
    let told = &opening["capabilities"];
    assert_ne!(told["tools"]["listChanged"], true);
    assert_ne!(told["prompts"]["listChanged"], true);
    assert_eq!(told["tools"]["x"], 1);
    assert_eq!(told["resources"], json!({"subscribe":true,"listChanged":true}));
    assert!(told["logging"].is_object(), "{told}");
    assert_absent(told, &["tasks"]);
    assert_eq!(told["extensions"], json!({"io.modelcontextprotocol/skills":{}}));
    let skills = harness.ask("skills/list", "{}").await.result();
    assert_eq!(skills["skills"], json!([]));
    assert_eq!(skills.get("resultType").is_some(), harness_era == Era::Modern, "{skills}");
});

fn assert_absent(object: &Value, members: &[&str]) {
    for member in members {
        assert!(object.get(member).is_none(), "{member} in {object}");
    }
}

fn answering(era: Era, members: &'static str) -> EndpointBuilder {
    Endpoint::era(era).on("tools/call", move |_| Reply::result(complete(era, members)))
}

fn structured(answer: &Answer) -> Option<Value> {
    assert_eq!(text(answer), "same");
    answer.result().get("structuredContent").cloned()
}

four_eras!(an_object_as_structured_content_passes, |harness_era, endpoint_era| async {
    let members = r#""content":[{"type":"text","text":"same"}],"structuredContent":{"a":[1.0],"b":null}"#;
    let (mut harness, _endpoint) = opened(harness_era, answering(endpoint_era, members)).await;
    assert_eq!(structured(&harness.call("echo", "{}").await), Some(json!({"a":[1.0],"b":null})));
});

macro_rules! other_structured_content {
    ($($name:ident: $value:literal),+ $(,)?) => {$(
        #[tokio::test]
        async fn $name() {
            const MEMBERS: &str =
                concat!(r#""content":[{"type":"text","text":"same"}],"structuredContent":"#, $value);
            let value: Value = serde_json::from_str($value).unwrap();
            let (mut modern, _endpoint) = opened(Era::Modern, answering(Era::Modern, MEMBERS)).await;
            assert_eq!(structured(&modern.call("echo", "{}").await), Some(value));
            let (mut legacy, _endpoint) = opened(Era::Legacy, answering(Era::Modern, MEMBERS)).await;
            assert_eq!(structured(&legacy.call("echo", "{}").await), None);
        }
    )+};
}
other_structured_content! {
    an_array_as_structured_content_is_for_modern_harnesses: "[1,{}]",
    a_text_as_structured_content_is_for_modern_harnesses: r#""x""#,
    a_number_as_structured_content_is_for_modern_harnesses: "1e3",
    null_as_structured_content_is_for_modern_harnesses: "null",
}

four_eras!(
    an_output_schema_that_describes_no_object_is_for_modern_harnesses,
    |harness_era, endpoint_era| async {
        let tool = |name: &str, rest: &str| {
            format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}{rest}}}"#)
        };
        let tools = [
            tool("plain", ""),
            tool("object", r#","outputSchema":{"type":"object","properties":{}},"x":1"#),
            tool("array", r#","outputSchema":{"type":"array"},"x":1"#),
            tool("untyped", r#","outputSchema":{"oneOf":[{"type":"object"}]},"x":1"#),
            tool("null", r#","outputSchema":null"#),
        ];
        let endpoint = Endpoint::era(endpoint_era).tools(&format!("[{}]", tools.join(",")));
        let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
        let list = harness.ask("tools/list", "{}").await.result();
        assert_eq!(names(&list["tools"]), ["plain", "object", "array", "untyped", "null"]);
        let list = list["tools"].as_array().unwrap();
        assert_eq!(list[1]["outputSchema"], json!({"type":"object","properties":{}}));
        assert_eq!(list[2]["x"], 1);
        for tool in &list[2..] {
            assert_eq!(tool.get("outputSchema").is_some(), harness_era == Era::Modern, "{tool}");
        }
    }
);

four_eras!(the_meta_of_results_is_kept, |harness_era, endpoint_era| async {
    let (mut harness, _endpoint) =
        opened(harness_era, Endpoint::era(endpoint_era).meta(r#""surfaceHash":"0f","com.example/n":1.0"#))
            .await;
    let read = r#"{"uri":"memo://one"}"#;
    for (method, params) in [
        ("tools/call", r#"{"name":"echo","arguments":{"text":"hi"}}"#),
        ("resources/read", read),
        ("resources/list", "{}"),
        ("tools/list", "{}"),
        ("prompts/list", "{}"),
        ("prompts/get", r#"{"name":"greet"}"#),
    ] {
        let answer = harness.ask(method, params).await;
        assert_eq!(answer.result()["_meta"]["surfaceHash"], "0f", "{method}: {}", answer.text());
        assert!(answer.text().contains(r#""com.example/n":1.0"#), "{method}: {}", answer.text());
    }
});

#[tokio::test]
async fn a_result_of_an_unknown_type_is_not_passed_on_as_a_success() {
    for harness_era in crate::opened::BOTH {
        for kind in [r#""task""#, r#""Complete""#, "7", "null"] {
            let result = format!(r#"{{"resultType":{kind},"taskId":"t","content":[]}}"#);
            let endpoint = Endpoint::modern().on("tools/call", move |_| Reply::result(result.clone()));
            let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
            assert!(harness.call("echo", "{}").await.is_error(), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_modern_result_without_a_type_is_complete() {
    for harness_era in crate::opened::BOTH {
        let result = r#"{"content":[{"type":"text","text":"same"}]}"#;
        let endpoint = Endpoint::modern().on("tools/call", move |_| Reply::result(result));
        let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
        assert_eq!(text(&harness.call("echo", "{}").await), "same");
    }
}

#[tokio::test]
async fn the_served_tool_list_is_private_whatever_the_endpoint_says() {
    let list = r#"{"resultType":"complete","tools":[],"ttlMs":5000,"cacheScope":"public"}"#;
    let endpoint = Endpoint::modern().on("tools/list", move |_| Reply::result(list));
    let (mut harness, _endpoint) = opened(Era::Modern, endpoint).await;
    assert_eq!(harness.ask("tools/list", "{}").await.result()["cacheScope"], "private");
}
