//! What is secret stays so: not a word of it on stderr, however loud.

use crate::support::{Endpoint, Era, Harness, Recorded, Reply, Script, four_eras};

const TOKEN: &str = "t0ken-s3cret";
const HEADER: &str = "h3ader-s3cret";
const QUERY: &str = "qu3ry-s3cret";
const URI: &str = "pr1vate-s3cret";
const STATE: &str = "st4te-s3cret";
const ARGUMENT: &str = "argum3nt-s3cret";

/// Every kind of trouble, each with the secrets in it.
fn trouble(request: &Recorded) -> Reply {
    let echo = format!("{TOKEN} {HEADER} {QUERY} {:?}", request.headers);
    match request.param("arguments")["n"].as_u64().unwrap_or_default() {
        0 => Reply::full(500, "text/plain", echo),
        1 => Reply::full(200, "text/html", echo),
        2 => Reply::full(200, "application/json", echo),
        3 => Reply::status(307).with_header("location", &format!("http://127.0.0.1:1/x?key={QUERY}#{TOKEN}")),
        4 => Reply::status(401).with_header("www-authenticate", &format!("Bearer realm=\"{TOKEN}\"")),
        5 => Reply::status(403),
        6 => Reply::close(),
        7 => Reply::sse(Script::new().event(&echo).cut()),
        8 => Reply::sse(Script::new().comment(&echo)),
        9 => Reply::status(429).with_header("retry-after", TOKEN),
        10 => Reply::error_code(-32000, &echo),
        11 => Reply::full(200, "application/json", echo).with_header("content-encoding", "gzip"),
        12 => Reply::full(404, "text/plain", echo),
        _ => Reply::text(&echo),
    }
}

/// A session full of trouble, as loud as can be; yields stderr.
async fn stderr_of_a_bad_day(harness_era: Era, endpoint_era: Era, args: &[&str]) -> String {
    let endpoint = Endpoint::era(endpoint_era)
        .query(&format!("key={QUERY}"))
        .expect_bearer(TOKEN)
        .sessions()
        .start()
        .await;
    let mut harness = Harness::launch(&endpoint.url())
        .env("MCP_HASP_TOKEN", TOKEN)
        .env("KEY", HEADER)
        .args(&["-vv", "--header", "X-Key: ${KEY}"])
        .args(args)
        .start();
    harness.open(harness_era, r#"{"elicitation":{}}"#).await.result();
    assert_eq!(endpoint.requests()[0].header("x-key"), Some(HEADER));
    harness.call("echo", &format!(r#"{{"text":"{ARGUMENT}"}}"#)).await.result();
    harness.ask("resources/read", &format!(r#"{{"uri":"memo://{URI}"}}"#)).await.result();
    harness.ask("resources/read", &format!(r#"{{"uri":"unknown://{URI}"}}"#)).await;
    if harness_era == Era::Legacy {
        harness.ask("resources/subscribe", &format!(r#"{{"uri":"memo://{URI}"}}"#)).await;
    }
    let retry =
        format!(r#"{{"name":"ask","arguments":{{}},"inputResponses":{{}},"requestState":"{STATE}"}}"#);
    harness.ask("tools/call", &retry).await;
    harness.send_line(format!("no json {TOKEN}").as_bytes()).await;
    endpoint.set("tools/call", trouble);
    // a modern endpoint that says 404 would have to forget the session, too
    for n in (0..14).filter(|n| *n != 12 || endpoint_era == Era::Legacy) {
        harness.call("echo", &format!(r#"{{"n":{n}}}"#)).await;
    }
    endpoint.set("resources/read", trouble);
    harness.ask("resources/read", &format!(r#"{{"uri":"memo://{URI}"}}"#)).await;
    harness.close_stdin();
    harness.wait_exit().await;
    endpoint.take_violations();
    let session = (0..20).map(|n| format!("session-{n}")).find(|id| harness.stderr_text().contains(id));
    assert_eq!(session, None, "a session id is on stderr:\n{}", harness.stderr_text());
    harness.stderr_text()
}

fn holds_no_secret(stderr: &str) {
    assert!(!stderr.is_empty(), "-vv says something");
    for secret in [TOKEN, HEADER, QUERY, URI, STATE, ARGUMENT] {
        assert!(!stderr.contains(secret), "{secret} is on stderr:\n{stderr}");
    }
}

four_eras!(no_secret_is_on_stderr, |harness_era, endpoint_era| async {
    holds_no_secret(&stderr_of_a_bad_day(harness_era, endpoint_era, &[]).await);
});

four_eras!(no_secret_is_on_stderr_as_json, |harness_era, endpoint_era| async {
    let stderr = stderr_of_a_bad_day(harness_era, endpoint_era, &["--log-format", "json"]).await;
    holds_no_secret(&stderr);
    for line in stderr.lines() {
        let json: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(json.is_object(), "{line}");
    }
});

/// An endpoint that fails at start, with everything it was told in its words.
async fn stderr_of_a_bad_start(reply: fn() -> Reply) -> String {
    let endpoint = Endpoint::legacy()
        .query(&format!("key={QUERY}"))
        .expect_bearer(TOKEN)
        .on("server/discover", move |_| reply())
        .on("initialize", move |_| reply())
        .start()
        .await;
    let mut harness = Harness::launch(&endpoint.url())
        .args(&["-vv", "--token", TOKEN, "--header"])
        .arg(format!("X-Key: {HEADER}"))
        .start();
    assert!(harness.open(Era::Legacy, "{}").await.is_error());
    assert_ne!(harness.wait_exit().await.0, 0);
    harness.stderr_text()
}

#[tokio::test]
async fn no_secret_is_on_stderr_when_the_start_fails() {
    let replies: [fn() -> Reply; 5] = [
        || Reply::full(404, "text/plain", format!("{TOKEN} {HEADER} {QUERY}")),
        || Reply::status(401).with_header("www-authenticate", &format!("Bearer realm=\"{TOKEN} {HEADER}\"")),
        || Reply::status(302).with_header("location", &format!("/x?{QUERY}&{HEADER}#{TOKEN}")),
        || Reply::full(200, "text/plain", format!("{TOKEN} {HEADER} {QUERY}")),
        || Reply::full(200, "application/json", format!("{TOKEN} {HEADER} {QUERY}")),
    ];
    for reply in replies {
        holds_no_secret(&stderr_of_a_bad_start(reply).await);
    }
}

/// F27: also with server errors that echo the request.
#[tokio::test]
async fn no_secret_is_on_stderr_when_the_endpoint_repeats_it_in_an_error() {
    let replies: [fn() -> Reply; 3] = [
        || Reply::error_code(-32020, &format!("bad headers: {TOKEN} {HEADER} {QUERY}")).with_status(400),
        || Reply::error_code(-32603, &format!("who is {TOKEN}? {HEADER} {QUERY}")),
        || Reply::error_code(-32603, &format!("who is {TOKEN}? {HEADER} {QUERY}")).with_status(500),
    ];
    for reply in replies {
        holds_no_secret(&stderr_of_a_bad_start(reply).await);
    }
}
