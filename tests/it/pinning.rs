//! Nothing but the pinned surface is served, and nothing at all once it changed: the contract's section on pinning,
//! sentence by sentence, against the program itself.

mod announced;
mod carried;
mod listed;
mod paths;
mod start;

use serde_json::Value;

use crate::{
    opened::assert_reason,
    support::{Answer, Endpoint, EndpointBuilder, Era, Fate, Harness, LEGACY, Recorded},
};

/// Capabilities of an endpoint that announces nothing, so that the program has nothing to watch.
const QUIET: &str = r#"{"tools":{},"resources":{},"prompts":{},"completions":{}}"#;
/// The key and the value that most endpoints here declare their hash with.
const DECLARED: &str = r#""com.example/surfaceHash":"sha256:one""#;
/// The default tools with another description.
const CHANGED: &str = r#"[{"name":"echo","description":"Return the text and the keys.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"sleep","description":"Wait until woken.","inputSchema":{"type":"object"}},{"name":"ask","description":"Ask the user.","inputSchema":{"type":"object"}}]"#;
/// The default tools in another order, with their members in another order.
const SHUFFLED: &str = r#"[{"inputSchema":{"type":"object"},"description":"Ask the user.","name":"ask"},{"inputSchema":{"required":["text"],"type":"object","properties":{"text":{"type":"string"}}},"name":"echo","description":"Return the text."},{"name":"sleep","inputSchema":{"type":"object"},"description":"Wait until woken."}]"#;
/// What stderr says, in one line, of a surface that changed.
const NOT_PINNED: &str = "the surface is not the pinned one";

/// An endpoint that announces nothing.
fn quiet(era: Era) -> EndpointBuilder {
    Endpoint::era(era).capabilities(QUIET)
}

/// The flag that a first run prints.
async fn printed_hash(endpoint: &Endpoint) -> String {
    let mut harness = Harness::start(&endpoint.url(), &[]);
    assert!(!harness.open(Era::Modern, "{}").await.is_error());
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    flag(&harness.stderr_text())
}

/// The value behind `--expect-hash` in a text.
fn flag(stderr: &str) -> String {
    let rest = stderr.split_once("--expect-hash ").unwrap_or_else(|| panic!("no flag: {stderr}")).1;
    rest.split_whitespace().next().unwrap().to_owned()
}

/// Asserts that the program refuses to serve: the harness's first request gets that reason, the process that code.
async fn refuses(harness: &mut Harness, era: Era, reason: Option<&str>, exit: i32) -> String {
    let answer = harness.open(era, "{}").await;
    match reason {
        Some(reason) => assert_reason(&answer, reason),
        None => assert!(answer.is_error(), "{}", answer.text()),
    }
    assert_eq!(harness.wait_exit().await.0, exit, "{}", harness.stderr_text());
    assert!(harness.lines().iter().all(|line| line.get("result").is_none()), "something was served");
    harness.stderr_text()
}

/// How a sealed session comes to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Left,
    Terminated,
}

/// Asserts that the session is sealed, and sees the program out. Returns stderr.
async fn sealed(harness: &mut Harness, endpoint: &Endpoint, era: Era) -> String {
    sealed_until(harness, endpoint, era, End::Left).await
}

async fn sealed_until(harness: &mut Harness, endpoint: &Endpoint, era: Era, end: End) -> String {
    harness.wait_stderr(NOT_PINNED).await;
    assert_reason(&echo_call(harness).await, "surface_changed");
    // streams are closed, and nothing is under way any more
    endpoint.wait_for(|all| all.iter().all(|request| request.fate != Fate::Open)).await;
    let before = endpoint.requests().len();
    let cancelled = harness.start_call("sleep", "{}").await;
    assert_reason(&harness.answer(cancelled).await, "surface_changed");
    harness.cancel(cancelled).await;
    for (method, params) in [
        ("tools/list", "{}"),
        ("prompts/list", "{}"),
        ("resources/templates/list", "{}"),
        ("resources/list", "{}"),
        ("resources/read", r#"{"uri":"memo://one"}"#),
        ("prompts/get", r#"{"name":"greet"}"#),
        ("tools/call", r#"{"name":"nobody"}"#),
    ] {
        assert_reason(&harness.ask(method, params).await, "surface_changed");
    }
    if era == Era::Legacy {
        assert_reason(&harness.ask("ping", "{}").await, "surface_changed");
        assert_reason(
            &harness.ask("resources/subscribe", r#"{"uri":"memo://one"}"#).await,
            "surface_changed",
        );
        assert_reason(&harness.initialize(LEGACY, "{}").await, "surface_changed");
    } else {
        assert_reason(&harness.discover("{}").await, "surface_changed");
    }
    match end {
        End::Left => harness.close_stdin(),
        End::Terminated => harness.signal("TERM").await,
    }
    assert_eq!(harness.wait_exit().await.0, 2, "{end:?}: {}", harness.stderr_text());
    let after: Vec<Recorded> = endpoint.requests().drain(before..).collect();
    assert!(after.is_empty(), "sent although sealed: {after:?}");
    let stderr = harness.stderr_text();
    assert_eq!(stderr.matches(NOT_PINNED).count(), 1, "said once: {stderr}");
    stderr
}

async fn echo_call(harness: &mut Harness) -> Answer {
    harness.call("echo", r#"{"text":"hi"}"#).await
}

/// Waits until the streams are open on which the endpoint can say something by itself.
async fn streaming(endpoint: &Endpoint, harness_era: Era, endpoint_era: Era) {
    match (endpoint_era, harness_era) {
        // the program's own
        (Era::Modern, Era::Modern) => endpoint.listens(1).await,
        // and one for the harness, which is told of changed resources without asking
        (Era::Modern, Era::Legacy) => endpoint.listens(2).await,
        (Era::Legacy, _) => endpoint.get_streams(1).await,
    }
}

/// Asserts that a call goes through.
async fn works(harness: &mut Harness) {
    let answer = echo_call(harness).await;
    assert_eq!(answer.result()["content"][0]["text"], "hi", "{}", answer.text());
}

/// Asserts that stdout has nothing of a withheld text.
fn nowhere(harness: &Harness, secret: &str) {
    let lines = harness.lines();
    assert!(!Value::from(lines.clone()).to_string().contains(secret), "{secret} was shown: {lines:?}");
}

/// Asserts that stderr names the tool and the member that changed, below the line.
fn names_the_description(stderr: &str) {
    let rows: Vec<_> = stderr.lines().filter(|line| line.contains("description")).collect();
    assert!(rows.iter().any(|row| row.contains("echo")), "{stderr}");
    assert!(stderr.contains("Return the text and the keys."), "{stderr}");
}
