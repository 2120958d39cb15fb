//! A start that fails says so: to the harness, in one line on stderr, and in the exit code.

use std::{net::TcpListener, time::Duration};

use super::{Phase, in_phase};
use crate::support::{Endpoint, Era, Harness, Reply};

/// A URL where nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/mcp", listener.local_addr().unwrap())
}

/// Asks, and expects an error; then the end with that code and one line on stderr.
async fn fails(harness: &mut Harness, era: Era, code: i32, reasons: &[&str]) -> String {
    let answer = harness.open(era, "{}").await;
    let error = answer.error();
    assert_eq!(error["code"], -32603, "{}", answer.text());
    let reason = error["data"]["reason"].as_str().unwrap_or_default();
    assert!(reasons.contains(&reason), "{}", answer.text());
    ends(harness, code).await
}

async fn ends(harness: &mut Harness, code: i32) -> String {
    let (ended, _) = harness.wait_exit().await;
    let stderr = harness.stderr_text();
    assert_eq!(ended, code, "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "one line with --quiet: {stderr}");
    assert!(stderr.starts_with("mcp-hasp: "), "{stderr}");
    for word in ["panicked", "RUST_BACKTRACE", "Error {", "Some(", "src/"] {
        assert!(!stderr.contains(word), "{word} in {stderr}");
    }
    stderr
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_ends_the_start_with_69() {
    for era in [Era::Modern, Era::Legacy] {
        let url = nowhere();
        let mut harness = Harness::start(&url, &["--quiet"]);
        let stderr = fails(&mut harness, era, 69, &["endpoint_unreachable", "start_failed"]).await;
        assert!(stderr.contains(&url), "{stderr}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_ends_the_start_although_nobody_asks() {
    let mut harness = Harness::start(&nowhere(), &["--quiet"]);
    ends(&mut harness, 69).await;
}

#[tokio::test]
async fn every_request_that_was_held_gets_an_error_when_the_start_fails() {
    let mut harness = Harness::start(&nowhere(), &["--quiet"]);
    harness.speak_modern("{}");
    let mut held = vec![harness.request("server/discover", "{}").await];
    for _ in 0..5 {
        held.push(harness.request("tools/list", "{}").await);
        held.push(harness.start_call("echo", "{}").await);
    }
    for id in held {
        assert!(harness.answer(id).await.is_error());
    }
    ends(&mut harness, 69).await;
}

async fn start_fails(endpoint_era: Era, reply: fn() -> Reply, code: i32, reasons: &[&str]) -> String {
    let endpoint = Endpoint::era(endpoint_era)
        .on("server/discover", move |_| reply())
        .on("initialize", move |_| reply())
        .allow_unknown()
        .answers_probes()
        .start()
        .await;
    let mut harness = Harness::start(&endpoint.url(), &["--quiet"]);
    let stderr = fails(&mut harness, Era::Legacy, code, reasons).await;
    assert!(stderr.contains(&endpoint.url()), "{stderr}");
    assert!(endpoint.requests().len() <= 10);
    stderr
}

const NOT_MCP: [&str; 6] =
    ["start_failed", "content_type", "http_status", "malformed_answer", "no_answer", "not_mcp"];

#[tokio::test]
async fn a_web_page_is_no_endpoint() {
    start_fails(Era::Legacy, || Reply::full(200, "text/html", "<html>Hi</html>"), 69, &NOT_MCP).await;
    start_fails(Era::Legacy, || Reply::full(404, "text/html", "<html>No</html>"), 69, &NOT_MCP).await;
    start_fails(Era::Legacy, || Reply::status(405), 69, &NOT_MCP).await;
}

#[tokio::test]
async fn json_that_is_not_mcp_is_no_endpoint() {
    start_fails(Era::Legacy, || Reply::full(200, "application/json", "{\"ok\":true}"), 69, &NOT_MCP).await;
    start_fails(Era::Legacy, || Reply::result("{}"), 69, &NOT_MCP).await;
    start_fails(Era::Legacy, Reply::accepted, 69, &NOT_MCP).await;
}

#[tokio::test]
async fn a_revision_that_nobody_knows_is_no_endpoint() {
    let newer = || {
        Reply::result(
            r#"{"resultType":"complete","supportedVersions":["2099-01-01"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}"#,
        )
    };
    let stderr = start_fails(Era::Modern, newer, 69, &NOT_MCP).await;
    assert!(stderr.contains("2099-01-01"), "{stderr}");
    let odd = || {
        Reply::result(
            r#"{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#,
        )
    };
    let stderr = start_fails(Era::Legacy, odd, 69, &NOT_MCP).await;
    assert!(stderr.contains("1999-01-01"), "{stderr}");
}

#[tokio::test]
async fn an_endpoint_that_only_fails_ends_the_start_with_69() {
    let reasons = ["start_failed", "http_status", "rate_limited", "connection_lost"];
    tokio::join!(
        start_fails(Era::Modern, || Reply::full(500, "text/plain", "boom"), 69, &reasons),
        start_fails(Era::Modern, || Reply::status(503), 69, &reasons),
        start_fails(Era::Legacy, || Reply::status(429).with_header("retry-after", "1"), 69, &reasons),
        start_fails(Era::Legacy, Reply::close, 69, &reasons),
    );
}

#[tokio::test]
async fn an_endpoint_that_asks_for_a_sign_in_ends_the_start_with_77() {
    let reasons = ["sign_in_required", "start_failed"];
    let stderr = start_fails(Era::Modern, || Reply::status(401), 77, &reasons).await;
    assert!(stderr.contains("--issuer") && stderr.contains("--token-file"), "it says what to do: {stderr}");
    start_fails(Era::Legacy, || Reply::full(401, "text/html", "<p>who?</p>"), 77, &reasons).await;
}

#[tokio::test]
async fn an_endpoint_that_refuses_access_ends_the_start_with_77() {
    start_fails(Era::Modern, || Reply::status(403), 77, &["forbidden", "start_failed"]).await;
}

/// A surface that cannot be read whole is not served in part.
async fn a_broken_list(endpoint_era: Era, method: &str, reply: fn() -> Reply) {
    let endpoint = Endpoint::era(endpoint_era).on(method, move |_| reply()).start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--quiet"]);
    let answer = harness.open(Era::Legacy, "{}").await;
    assert!(answer.is_error(), "{}", answer.text());
    ends(&mut harness, 69).await;
}

#[tokio::test]
async fn a_surface_that_cannot_be_read_whole_ends_the_start_with_69() {
    for era in [Era::Modern, Era::Legacy] {
        for method in ["tools/list", "prompts/list", "resources/templates/list"] {
            a_broken_list(era, method, || Reply::error_code(-32603, "not today")).await;
            a_broken_list(era, method, || Reply::full(200, "text/html", "<p>")).await;
            a_broken_list(era, method, || Reply::result(r#"{"resultType":"weird"}"#)).await;
        }
        a_broken_list(era, "tools/list", || Reply::result(r#"{"resultType":"complete","tools":{}}"#)).await;
        a_broken_list(era, "tools/list", || {
            Reply::result(r#"{"resultType":"complete","tools":[],"tools":[{"name":"x"}]}"#)
        })
        .await;
        a_broken_list(era, "tools/list", || {
            Reply::result(r#"{"resultType":"complete","tools":[{"name":"x","inputSchema":{},"name":"y"}]}"#)
        })
        .await;
        a_broken_list(era, "tools/list", || {
            Reply::result(r#"{"resultType":"complete","tools":[{"name":"x"},{"name":"x"}]}"#)
        })
        .await;
        a_broken_list(era, "tools/list", || {
            Reply::result(r#"{"resultType":"complete","tools":[],"nextCursor":"again"}"#)
        })
        .await;
    }
}

/// What the endpoint says is shown as text, and cannot play with the terminal.
#[tokio::test]
async fn words_of_the_endpoint_cannot_control_the_terminal() {
    let nasty = || {
        Reply::error(r#"{"code":-32020,"message":"\u001b[2J\u001b]0;owned\u0007 line\nbreak \u202etxt.exe \u009b31m"}"#)
            .with_status(400)
    };
    let endpoint = Endpoint::modern().on("server/discover", move |_| nasty()).start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--quiet"]);
    assert!(harness.open(Era::Legacy, "{}").await.is_error());
    let stderr = ends(&mut harness, 69).await;
    let bad = |sign: char| (sign.is_control() && sign != '\n') || sign == '\u{202e}';
    assert!(!stderr.contains(bad), "{stderr:?}");
}

#[tokio::test]
async fn a_ping_is_answered_while_the_endpoint_does_not_answer() {
    for endpoint_era in [Era::Modern, Era::Legacy] {
        let (_endpoint, mut harness) = in_phase(Phase::Opening, Era::Legacy, endpoint_era, |it| it).await;
        harness.send_line(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
        assert_eq!(harness.answer_to("\"p\"").await.result_raw(), "{}");
    }
}

/// The one slow test: whatever happens, the first message is answered within 20 seconds.
#[tokio::test]
async fn the_first_message_is_answered_within_20_seconds_whatever_happens() {
    const LIMIT: Duration = Duration::from_secs(20);
    async fn answered(url: String, era: Era) {
        let mut harness = Harness::start(&url, &[]);
        let id = match era {
            Era::Modern => {
                harness.speak_modern("{}");
                harness.request("server/discover", "{}").await
            }
            Era::Legacy => {
                let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
                harness.request("initialize", params).await
            }
        };
        let answer = harness.answer_within(&id.to_string(), LIMIT).await;
        assert!(answer.is_error(), "{}", answer.text());
    }
    let silent =
        |builder: crate::support::EndpointBuilder, method: &str| builder.on(method, |_| Reply::hang());
    let modern = silent(Endpoint::modern(), "server/discover").start().await;
    let legacy = silent(Endpoint::legacy(), "initialize").start().await;
    let list = silent(Endpoint::modern(), "tools/list").start().await;
    let patient = Endpoint::modern()
        .on("server/discover", |_| Reply::status(503).with_header("retry-after", "3600"))
        .start()
        .await;
    tokio::join!(
        answered(modern.url(), Era::Modern),
        answered(legacy.url(), Era::Legacy),
        answered(list.url(), Era::Legacy),
        answered(patient.url(), Era::Modern),
    );
}

/// A port that writes to everybody, once and then for ever, and reads nothing.
async fn a_port_that_says(once: &'static str, for_ever: &'static str) -> String {
    use tokio::io::AsyncWriteExt as _;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.write_all(once.as_bytes()).await;
                while !for_ever.is_empty() && stream.write_all(for_ever.as_bytes()).await.is_ok() {}
            });
        }
    });
    url
}

#[tokio::test]
async fn a_port_that_does_not_speak_http_ends_the_start_with_69() {
    let start = async |once, for_ever| {
        let url = a_port_that_says(once, for_ever).await;
        let mut harness = Harness::start(&url, &["--quiet"]);
        let answer = harness.open(Era::Legacy, "{}").await;
        assert!(answer.is_error(), "{}", answer.text());
        let stderr = ends(&mut harness, 69).await;
        assert!(stderr.contains(&url), "{stderr}");
    };
    let head = "HTTP/1.1 200 OK\r\n";
    tokio::join!(
        start("", ""),
        start("SSH-2.0-OpenSSH_9.9\r\n", ""),
        start("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: x\r\n\r\n{}", ""),
        start(head, ""),
        start("", "a"),
        start("", "\0\u{1}\u{2}"),
        // heads without end
        start(
            head,
            "X-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
        ),
        start(
            "HTTP/1.1 200 OK\r\nX-A: ",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        ),
    );
}
