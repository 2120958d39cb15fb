//! Finding out which era the endpoint speaks: what each answer to the probe means.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    opened::{BOTH, opened, text},
    support::{Endpoint, EndpointBuilder, Era, Harness, Recorded, Reply},
};

type Answering = fn(&Recorded) -> Reply;

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;

fn plain(status: u16, media: &str, body: &'static str) -> Reply {
    Reply::full(status, media, body)
}

fn unsupported(supported: &str) -> Reply {
    let data = format!(r#"{{"supported":[{supported}],"requested":"2026-07-28"}}"#);
    Reply::error(format!(r#"{{"code":-32022,"message":"Unsupported protocol version","data":{data}}}"#))
        .with_status(400)
}

/// Answers the first requests one way and all later ones another way.
fn first(times: usize, early: Answering, later: Answering) -> impl Fn(&Recorded) -> Reply {
    let count = AtomicUsize::new(0);
    move |request| {
        if count.fetch_add(1, Ordering::Relaxed) < times { early(request) } else { later(request) }
    }
}

async fn assert_legacy(what: &str, endpoint: impl Fn() -> EndpointBuilder) {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, endpoint()).await;
        assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi", "{what}");
        assert_eq!(endpoint.requests_of("server/discover").len(), 1, "{what}");
        assert_eq!(endpoint.requests_of("initialize").len(), 1, "{what}");
        assert_eq!(endpoint.requests_of("notifications/initialized").len(), 1, "{what}");
    }
}

#[tokio::test]
async fn an_answer_without_a_modern_sign_means_a_legacy_endpoint() {
    let answers: [(&str, Answering); 17] = [
        ("400, not initialized", |_| Reply::error_code(-32000, "Server not initialized").with_status(400)),
        ("400, invalid request without an id", |_| {
            let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}"#;
            plain(400, "application/json", body)
        }),
        ("400, invalid params", |_| Reply::error_code(-32602, "Invalid params").with_status(400)),
        ("400, a draft's number of a modern error", |_| Reply::error_code(-32004, "x").with_status(400)),
        ("400, HTML", |_| plain(400, "text/html", "<html>Bad Request</html>")),
        ("400, nothing", |_| Reply::status(400)),
        ("200, method not found", |_| Reply::error_code(-32601, "Method not found")),
        ("200, method not found, as an event", |_| {
            Reply::sse(crate::support::Script::new().error(r#"{"code":-32601,"message":"Method not found"}"#))
        }),
        ("200, internal error", |_| Reply::error_code(-32603, "Internal error")),
        ("404, text", |_| plain(404, "text/plain", "Not Found")),
        ("404, method not found", |_| Reply::error_code(-32601, "Method not found").with_status(404)),
        ("404, session not found", |_| Reply::error_code(-32001, "Session not found").with_status(404)),
        ("405", |_| Reply::status(405)),
        ("406", |_| plain(406, "application/json", r#"{"error":"Not Acceptable"}"#)),
        ("415", |_| Reply::status(415)),
        ("422, no JSON-RPC", |_| plain(422, "application/json", r#"{"detail":[{"loc":["header"]}]}"#)),
        ("422, text", |_| plain(422, "text/plain", "Unprocessable")),
    ];
    for (what, answer) in answers {
        assert_legacy(what, || Endpoint::legacy().on("server/discover", answer)).await;
    }
}

#[tokio::test]
async fn an_unsupported_version_with_legacy_ones_alone_leads_to_initialize() {
    let endpoint = || {
        Endpoint::legacy().on("server/discover", |_| unsupported(r#""2027-03-01","2025-11-25","2025-06-18""#))
    };
    assert_legacy("-32022", endpoint).await;
}

#[tokio::test]
async fn an_unsupported_version_with_ours_among_the_supported_is_tried_again_and_never_initialized() {
    let answer = first(
        1,
        |_| unsupported(r#""2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05""#),
        |_| Reply::result(DISCOVERED),
    );
    let (mut harness, endpoint) =
        opened(Era::Legacy, Endpoint::modern().on("server/discover", answer).allow_unknown()).await;
    assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
    assert!(endpoint.requests_of("initialize").is_empty());
}

#[tokio::test]
async fn one_of_several_versions_of_a_modern_endpoint_is_chosen() {
    for harness_era in BOTH {
        let answer = |_: &Recorded| {
            Reply::result(DISCOVERED.replace("[\"2026", "[\"2027-03-01\",\"2025-11-25\",\"2026"))
        };
        let (mut harness, endpoint) =
            opened(harness_era, Endpoint::modern().on("server/discover", answer)).await;
        assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
        assert!(endpoint.requests_of("initialize").is_empty());
    }
}

#[tokio::test]
async fn a_server_that_is_down_for_a_moment_says_nothing_about_its_era() {
    let unwell: [Answering; 3] =
        [|_| Reply::status(503), |_| Reply::error_code(-32603, "down").with_status(500), |_| Reply::close()];
    for early in unwell {
        let answer = first(2, early, |_| Reply::result(DISCOVERED));
        let (mut harness, endpoint) =
            opened(Era::Modern, Endpoint::modern().on("server/discover", answer)).await;
        assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
        assert!(endpoint.requests_of("initialize").is_empty());
    }
}

#[tokio::test]
async fn what_is_neither_a_modern_nor_a_legacy_sign_ends_the_start_without_initialize() {
    let answers: [(&str, Answering, i32); 9] = [
        ("header mismatch", |_| Reply::error_code(-32020, "x").with_status(400), 69),
        ("missing capability", |_| Reply::error_code(-32021, "x").with_status(400), 69),
        ("missing capability with 200", |_| Reply::error_code(-32021, "x"), 69),
        ("no version at all", |_| unsupported(""), 69),
        ("a version that nobody knows", |_| unsupported(r#""2027-03-01""#), 69),
        ("our version refused again and again", |_| unsupported(r#""2026-07-28""#), 69),
        ("redirect", |_| Reply::status(308).with_header("location", "/mcp/"), 69),
        ("forbidden", |_| Reply::status(403), 77),
        ("down for good", |_| Reply::status(503), 69),
    ];
    for (what, answer, expected) in answers {
        let endpoint = Endpoint::modern().on("server/discover", answer).allow_unknown().start().await;
        let mut harness = Harness::start(&endpoint.url(), &["--quiet"]);
        let (code, _) = harness.wait_exit().await;
        assert_eq!(code, expected, "{what}: {}", harness.stderr_text());
        assert!(endpoint.requests_of("initialize").is_empty(), "{what}");
        assert_eq!(endpoint.requests().len(), endpoint.requests_of("server/discover").len(), "{what}");
        assert_eq!(harness.stderr_text().trim_end().lines().count(), 1, "{}", harness.stderr_text());
    }
}

/// The program ends with 69 once a legacy harness has opened, and says that on stderr.
async fn assert_not_usable(endpoint: EndpointBuilder, word: &str) {
    let endpoint = endpoint.start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    let params =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}"#;
    let id = harness.request("initialize", params).await;
    assert!(harness.answer(id).await.is_error());
    assert_eq!(harness.wait_exit().await.0, 69, "{}", harness.stderr_text());
    assert!(harness.stderr_text().contains(word), "{}", harness.stderr_text());
}

#[tokio::test]
async fn an_endpoint_of_the_two_url_transport_is_named_as_such() {
    let old = || {
        Endpoint::legacy()
            .on("server/discover", |_| Reply::status(405))
            .on("initialize", |_| Reply::status(405))
    };
    assert_not_usable(old(), "SSE").await;
}

#[tokio::test]
async fn a_legacy_endpoint_that_chooses_an_unknown_revision_is_left_alone() {
    assert_not_usable(Endpoint::legacy().version("2031-01-01"), "2031-01-01").await;
}

#[tokio::test]
async fn a_legacy_endpoint_is_initialized_once_the_harness_is_known() {
    let endpoint = Endpoint::legacy().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    endpoint.arrived("server/discover", 0).await;
    assert!(endpoint.requests_of("initialize").is_empty());
    harness.initialize("2025-06-18", r#"{"elicitation":{},"roots":{},"sampling":{}}"#).await;
    let initialize = endpoint.arrived("initialize", 0).await;
    assert_eq!(initialize.param("protocolVersion"), "2025-11-25", "what the program itself knows best");
    assert_eq!(*initialize.param("capabilities"), serde_json::json!({"elicitation":{"form":{}}}));
    assert_eq!(initialize.param("clientInfo")["name"], "mcp-hasp");
    assert_eq!(endpoint.requests_of("initialize").len(), 1);
}
