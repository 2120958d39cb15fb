//! How the channel is declared, and when it begins.

use serde_json::json;

use super::{CAPABILITIES, Seats, listening, next_event};
use crate::{
    opened::{BOTH, code, line},
    support::{Endpoint, Era, Harness, LEGACY},
};

#[tokio::test]
async fn initialize_declares_it_and_says_what_comes_behind_the_endpoints_own_words() {
    for era in BOTH {
        let endpoint = Endpoint::era(era).instructions("Be brief.").start().await;
        let mut harness = Harness::start(&endpoint.url(), &["--channel"]);
        let opening = harness.open(Era::Legacy, "{}").await.result();
        assert_eq!(opening["capabilities"]["experimental"], json!({"claude/channel": {}}));
        let instructions = opening["instructions"].as_str().unwrap();
        assert!(instructions.starts_with("Be brief.\n"), "{instructions}");
        for word in ["one-way", "seated", "match ended", "approval", "owner", "tools"] {
            assert!(instructions.contains(word), "{word}: {instructions}");
        }
    }
}

#[tokio::test]
async fn an_endpoints_own_experiments_stay_and_its_channel_is_not_taken_for_ours() {
    let own = r#"{"tools":{},"experimental":{"x/y":{"a":1},"claude/channel":{"b":2},"claude/channel/permission":{}}}"#;
    let endpoint = Endpoint::legacy().capabilities(own).no_instructions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--channel"]);
    let opening = harness.open(Era::Legacy, "{}").await.result();
    assert_eq!(
        opening["capabilities"]["experimental"],
        json!({"x/y": {"a": 1}, "claude/channel": {}}),
        "permissions are never relayed"
    );
    assert!(opening["instructions"].as_str().unwrap().starts_with("mcp-hasp"));
}

#[tokio::test]
async fn without_the_option_there_is_no_channel() {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "playing"}));
    let own = r#"{"tools":{},"experimental":{"claude/channel":{}},"resources":{}}"#;
    let endpoint = seats.endpoint(Era::Modern).capabilities(own).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    let opening = harness.open(Era::Legacy, "{}").await.result();
    assert_eq!(opening["capabilities"].get("experimental").and_then(|all| all.get("claude/channel")), None);
    assert!(!opening["instructions"].as_str().unwrap().contains("channel"));
    harness.call("echo", r#"{"text":"x"}"#).await;
    assert!(endpoint.requests_of("resources/read").is_empty());
}

#[tokio::test]
async fn a_harness_that_asks_in_the_new_era_falls_back_to_the_old_one() {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "playing"}));
    let endpoint = seats.endpoint(Era::Modern).start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--channel"]);
    let refused = harness.discover("{}").await;
    assert_eq!(code(&refused), -32601);
    // Whatever else claims that era.
    let list = line(Era::Modern, "\"list\"", "tools/list", "");
    harness.send_line(list.as_bytes()).await;
    assert_eq!(code(&harness.answer_to("\"list\"").await), -32601);
    assert!(!harness.initialize(LEGACY, "{}").await.is_error());
    assert_eq!(next_event(&mut harness).await["event"], "seated");
    assert!(!harness.call("echo", r#"{"text":"x"}"#).await.is_error());
}

#[tokio::test]
async fn nothing_is_asked_or_said_before_the_harness_is_initialized() {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "playing"}));
    let endpoint = seats.endpoint(Era::Modern).start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--channel"]);
    let params = format!(
        r#"{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"a","version":"1"}}}}"#
    );
    assert!(!harness.ask("initialize", &params).await.is_error());
    for _ in 0..3 {
        assert!(!harness.call("echo", r#"{"text":"x"}"#).await.is_error());
    }
    for method in ["resources/list", "resources/read"] {
        assert!(endpoint.requests_of(method).is_empty(), "{method} before the harness was initialized");
    }
    harness.notify("notifications/initialized", "{}").await;
    assert_eq!(next_event(&mut harness).await["event"], "seated");
}

#[tokio::test]
async fn stderr_says_how_the_session_is_to_be_started() {
    let endpoint = Endpoint::modern().capabilities(CAPABILITIES).start().await;
    let mut harness = listening(&endpoint, &[]).await;
    harness.wait_stderr("--dangerously-load-development-channels server:").await;
    harness.wait_stderr("drops every event").await;
    harness.wait_stderr("the endpoint has no status that the channel knows").await;
}

#[tokio::test]
async fn what_cannot_be_meant_is_a_bad_command_line() {
    for (args, why) in [
        (&["--channel-resource", "game://"][..], "--channel"),
        (&["--channel-wait", "wait"], "--channel"),
        (&["--channel", "--channel-resource", "no uri"], "is not how a URI begins"),
        (&["--channel", "--channel-wait", ":field"], "TOOL or TOOL:FIELD"),
        (&["--channel", "--channel-wait", "wait:"], "TOOL or TOOL:FIELD"),
        (&["--channel", "--channel-wait-args", "{}"], "--channel-wait"),
        (&["--channel", "--channel-wait", "wait", "--channel-wait-args", "[1]"], "JSON object"),
        (&["--channel", "--channel-wait", "wait", "--channel-wait-args", "{"], "JSON object"),
    ] {
        let run = Harness::launch("https://example.com/mcp").args(args).run().await;
        assert_eq!(run.code, 64, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(why), "{args:?}: {}", run.stderr);
    }
}
