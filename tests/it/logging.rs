//! Log messages: set once in the legacy era, asked for with each request in the modern one.

use serde_json::{Value, json};

use crate::{
    opened::{BOTH, code, opened, text},
    support::{Endpoint, EndpointBuilder, Era, Recorded, Reply, Script},
};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// An endpoint whose calls say something at three levels before they answer.
fn talkative(era: Era) -> EndpointBuilder {
    let say = |script: Script, level: &str| {
        let params = format!(r#"{{"level":"{level}","logger":"t","data":{{"x":1.0}}}}"#);
        script.notification("notifications/message", &params)
    };
    let call = move |_: &Recorded| {
        let script = ["debug", "warning", "emergency"].into_iter().fold(Script::new(), say);
        Reply::sse(script.result(r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#))
    };
    Endpoint::era(era).capabilities(r#"{"tools":{},"logging":{}}"#).on("tools/call", call)
}

fn levels(lines: &[Value]) -> Vec<&str> {
    let messages = lines.iter().filter(|line| line["method"] == "notifications/message");
    messages.map(|line| line["params"]["level"].as_str().unwrap()).collect()
}

fn with_level(level: &str) -> String {
    format!(r#"{{"name":"echo","arguments":{{}},"_meta":{{"{LEVEL}":"{level}"}}}}"#)
}

#[tokio::test]
async fn the_level_of_a_legacy_harness_is_stamped_on_what_a_modern_endpoint_gets() {
    let (mut harness, endpoint) = opened(Era::Legacy, talkative(Era::Modern)).await;
    harness.call("echo", "{}").await;
    assert_eq!(harness.ask("logging/setLevel", r#"{"level":"warning"}"#).await.result(), json!({}));
    harness.call("echo", "{}").await;
    harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
    assert!(endpoint.arrived("tools/call", 0).await.param("_meta").get(LEVEL).is_none());
    assert_eq!(endpoint.arrived("tools/call", 1).await.param("_meta")[LEVEL], "warning");
    assert_eq!(endpoint.arrived("resources/read", 0).await.param("_meta")[LEVEL], "warning");
    assert!(endpoint.requests_of("logging/setLevel").is_empty());
}

#[tokio::test]
async fn the_level_of_a_legacy_harness_goes_on_to_a_legacy_endpoint() {
    let (mut harness, endpoint) = opened(Era::Legacy, talkative(Era::Legacy)).await;
    assert_eq!(harness.ask("logging/setLevel", r#"{"level":"error"}"#).await.result(), json!({}));
    assert_eq!(endpoint.arrived("logging/setLevel", 0).await.param("level"), "error");
    endpoint.get_streams(1).await;
    endpoint
        .push(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"out of the blue"}}"#)
        .await;
    let message = harness.next_notification("notifications/message").await;
    assert_eq!(message["params"], json!({"level":"error","data":"out of the blue"}));
}

#[tokio::test]
async fn what_a_legacy_endpoint_says_during_a_call_reaches_a_legacy_harness_before_the_answer() {
    let (mut harness, _endpoint) = opened(Era::Legacy, talkative(Era::Legacy)).await;
    assert_eq!(harness.ask("logging/setLevel", r#"{"level":"debug"}"#).await.result(), json!({}));
    assert_eq!(text(&harness.call("echo", "{}").await), "done");
    assert_eq!(levels(&harness.lines()), ["debug", "warning", "emergency"]);
    assert!(harness.lines().last().unwrap().get("result").is_some(), "the answer is the last line");
}

#[tokio::test]
async fn a_level_that_nobody_knows_is_refused() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Legacy, talkative(endpoint_era)).await;
        for params in [r#"{"level":"verbose"}"#, r#"{"level":"ERROR"}"#, r#"{"level":3}"#, "{}"] {
            assert_eq!(code(&harness.ask("logging/setLevel", params).await), -32602, "{params}");
        }
        assert!(endpoint.requests_of("logging/setLevel").is_empty());
    }
}

#[tokio::test]
async fn a_level_cannot_be_set_where_the_endpoint_has_no_log() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Legacy, Endpoint::era(endpoint_era)).await;
        assert_eq!(code(&harness.ask("logging/setLevel", r#"{"level":"error"}"#).await), -32601);
        assert!(endpoint.requests_of("logging/setLevel").is_empty());
    }
}

#[tokio::test]
async fn a_modern_harness_has_no_method_for_the_level() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Modern, talkative(endpoint_era)).await;
        assert_eq!(code(&harness.ask("logging/setLevel", r#"{"level":"error"}"#).await), -32601);
        assert!(endpoint.requests_of("logging/setLevel").is_empty());
    }
}

#[tokio::test]
async fn the_level_of_a_modern_request_passes_to_a_modern_endpoint_and_its_messages_back() {
    let (mut harness, endpoint) = opened(Era::Modern, talkative(Era::Modern)).await;
    assert_eq!(text(&harness.ask("tools/call", &with_level("debug")).await), "done");
    assert_eq!(endpoint.arrived("tools/call", 0).await.param("_meta")[LEVEL], "debug");
    let lines = harness.lines();
    assert_eq!(levels(&lines), ["debug", "warning", "emergency"]);
    assert_eq!(
        lines.iter().rev().nth(1).unwrap()["params"],
        json!({"level":"emergency","logger":"t","data":{"x":1.0}})
    );
    assert!(lines.last().unwrap().get("result").is_some(), "the answer is the last line");
}

#[tokio::test]
async fn a_modern_request_without_a_level_gets_no_messages() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Modern, talkative(endpoint_era)).await;
        assert_eq!(text(&harness.call("echo", "{}").await), "done");
        assert_eq!(levels(&harness.lines()), [""; 0]);
        assert!(endpoint.requests_of("logging/setLevel").is_empty());
    }
}

#[tokio::test]
async fn a_legacy_endpoint_is_set_to_the_lowest_level_asked_and_each_request_gets_its_own() {
    let (mut harness, endpoint) = opened(Era::Modern, talkative(Era::Legacy)).await;
    let mut seen = 0;
    for (level, expected, set) in [
        ("warning", &["warning", "emergency"][..], 1),
        ("critical", &["emergency"], 1),
        ("debug", &["debug", "warning", "emergency"], 2),
        ("error", &["emergency"], 2),
    ] {
        assert_eq!(text(&harness.ask("tools/call", &with_level(level)).await), "done");
        let lines = harness.lines();
        assert_eq!(levels(&lines[seen..]), expected, "{level}");
        seen = lines.len();
        let requests = endpoint.requests();
        let place = |method: &str| requests.iter().rposition(|request| request.method() == method).unwrap();
        assert!(place("logging/setLevel") < place("tools/call"), "set before the call");
        assert_eq!(endpoint.requests_of("logging/setLevel").len(), set, "{level}");
    }
    let asked = endpoint.requests_of("logging/setLevel");
    assert_eq!(asked.iter().map(|set| set.param("level")).collect::<Vec<_>>(), ["warning", "debug"]);
    let call = endpoint.arrived("tools/call", 0).await;
    assert!(call.param("_meta").get(LEVEL).is_none(), "a legacy endpoint knows no such key");
}
