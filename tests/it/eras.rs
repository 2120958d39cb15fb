//! Which era a harness speaks: versions, claims, both in one process, and ids that come back as they went.

use serde_json::json;

use crate::{
    opened::{BOTH, code, exchange, leave, line, names, opened, text},
    support::{Endpoint, Era, Harness, LEGACY, MODERN, four_eras},
};

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const ECHO: &str = r#""name":"echo","arguments":{"text":"hi"}"#;

#[tokio::test]
async fn a_known_revision_is_echoed_and_any_other_answered_with_the_newest_legacy_one() {
    let versions = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        (LEGACY, LEGACY),
        ("1999-01-01", LEGACY),
        (MODERN, LEGACY),
        ("", LEGACY),
    ];
    for (endpoint_era, (asked, agreed)) in BOTH.into_iter().flat_map(|era| versions.map(|pair| (era, pair))) {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        let opening = harness.initialize(asked, "{}").await;
        assert_eq!(opening.result()["protocolVersion"], agreed, "asked for {asked}");
        assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
    }
}

four_eras!(each_side_is_told_the_revision_agreed_with_it, |harness_era, endpoint_era| async {
    let old = Endpoint::era(endpoint_era).version("2025-03-26").sessions();
    let (mut harness, endpoint) = opened(harness_era, old).await;
    harness.call("echo", r#"{"text":"hi"}"#).await;
    leave(&mut harness).await;
    let agreed = if endpoint_era == Era::Modern { MODERN } else { "2025-03-26" };
    let opening = |method: &str| ["initialize", "server/discover"].contains(&method);
    for request in endpoint.requests().iter().filter(|request| !opening(request.method())) {
        assert_eq!(
            request.header("mcp-protocol-version"),
            Some(agreed),
            "{} {}",
            request.verb,
            request.method()
        );
    }
});

#[tokio::test]
async fn a_claim_that_is_not_whole_is_refused_and_the_next_request_served() {
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities""#;
    let claims = [
        (-32022, format!(r#""{META_VERSION}":"2099-01-01",{capabilities}:{{}}"#)),
        (-32022, format!(r#""{META_VERSION}":"{LEGACY}",{capabilities}:{{}}"#)),
        (-32602, format!(r#""{META_VERSION}":7,{capabilities}:{{}}"#)),
        (-32602, format!(r#""{META_VERSION}":"{MODERN}""#)),
        (-32602, format!(r#""{META_VERSION}":"{MODERN}",{capabilities}:null"#)),
        (-32602, format!(r#""{META_VERSION}":"{MODERN}",{capabilities}:[]"#)),
    ];
    for endpoint_era in BOTH {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        for (id, (expected, meta)) in claims.iter().enumerate() {
            let id = id.to_string();
            let request = line(Era::Legacy, &id, "tools/call", &format!(r#"{ECHO},"_meta":{{{meta}}}"#));
            let answer = exchange(&mut harness, &id, &request).await;
            assert_eq!(code(&answer), *expected, "{request}");
            if *expected == -32022 {
                let data = &answer.error()["data"];
                assert!(data["supported"].as_array().unwrap().contains(&json!(MODERN)), "{data}");
                assert!(meta.contains(data["requested"].as_str().unwrap()), "{data}");
            }
        }
        let good = exchange(&mut harness, "99", &line(Era::Modern, "99", "tools/call", ECHO)).await;
        assert_eq!(text(&good), "hi");
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_request_without_a_claim_before_initialize_is_told_the_missing_key() {
    for endpoint_era in BOTH {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        for (id, method) in [("0", "tools/list"), ("1", "resources/read"), ("2", "server/discover")] {
            let answer = exchange(&mut harness, id, &line(Era::Legacy, id, method, "")).await;
            assert_eq!(code(&answer), -32602, "{method}");
            assert!(answer.error()["message"].as_str().unwrap().contains(META_VERSION), "{}", answer.text());
        }
        assert!(endpoint.requests_of("resources/read").is_empty());
    }
}

#[tokio::test]
async fn ping_is_answered_to_a_legacy_harness_alone() {
    for endpoint_era in BOTH {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        assert_eq!(harness.ask("ping", "{}").await.result(), json!({}));
        harness.initialize(LEGACY, "{}").await;
        assert_eq!(harness.ask("ping", "{}").await.result(), json!({}));
        harness.discover("{}").await;
        assert_eq!(code(&harness.ask("ping", "{}").await), -32601);
        assert!(endpoint.requests_of("ping").is_empty());
    }
}

#[tokio::test]
async fn ping_before_initialize_does_not_wait_for_the_endpoint() {
    for endpoint_era in BOTH {
        let hanging = Endpoint::era(endpoint_era).on("server/discover", |_| crate::support::Reply::hang());
        let endpoint = hanging.start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        endpoint.arrived("server/discover", 0).await;
        assert_eq!(harness.ask("ping", "{}").await.result(), json!({}));
    }
}

async fn assert_served_in_kind(harness: &mut Harness, era: Era) {
    let tools = harness.ask("tools/list", "{}").await.result();
    assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
    assert_eq!(tools.get("resultType").is_some(), era == Era::Modern, "{tools}");
    assert_eq!(tools.get("cacheScope").is_some(), era == Era::Modern, "{tools}");
    let called = harness.call("echo", r#"{"text":"hi"}"#).await;
    assert_eq!(called.result().get("resultType").is_some(), era == Era::Modern, "{}", called.text());
    assert_eq!(text(&called), "hi");
}

#[tokio::test]
async fn a_probe_may_be_followed_by_initialize_and_by_modern_requests_again() {
    for endpoint_era in BOTH {
        let (mut harness, _endpoint) = opened(Era::Modern, Endpoint::era(endpoint_era)).await;
        assert_served_in_kind(&mut harness, Era::Modern).await;
        let opening = harness.initialize(LEGACY, "{}").await;
        assert_eq!(opening.result()["protocolVersion"], LEGACY);
        assert_served_in_kind(&mut harness, Era::Legacy).await;
        harness.speak_modern("{}");
        assert_served_in_kind(&mut harness, Era::Modern).await;
    }
}

#[tokio::test]
async fn a_legacy_session_may_be_followed_by_discover() {
    for endpoint_era in BOTH {
        let (mut harness, _endpoint) = opened(Era::Legacy, Endpoint::era(endpoint_era)).await;
        let opening = harness.discover("{}").await;
        assert_eq!(opening.result()["supportedVersions"], json!([MODERN]));
        assert_served_in_kind(&mut harness, Era::Modern).await;
    }
}

four_eras!(ids_come_back_byte_for_byte, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    let ids = [
        "10",
        "-7",
        "9007199254740993",
        "18446744073709551615",
        "123456789012345678901234567890",
        r#""""#,
        r#""10""#,
        r#""a b""#,
        r#""caf\u00e9""#,
        r#""é\/\u0022\n""#,
        "0",
    ];
    for id in ids {
        for (method, members) in [("tools/call", ECHO), ("tools/list", ""), ("resources/read", READ)] {
            let answer = exchange(&mut harness, id, &line(harness_era, id, method, members)).await;
            assert_eq!(answer.id_raw(), id, "{method}");
            assert!(!answer.is_error(), "{}", answer.text());
        }
    }
    assert_eq!(endpoint.requests_of("tools/call").len(), ids.len());
});

const READ: &str = r#""uri":"memo://one""#;

#[tokio::test]
async fn an_array_of_messages_is_taken_from_the_one_revision_that_has_them() {
    for endpoint_era in BOTH {
        for (version, taken) in [("2025-03-26", true), ("2025-06-18", false), (LEGACY, false)] {
            let endpoint = Endpoint::era(endpoint_era).start().await;
            let mut harness = Harness::start(&endpoint.url(), &[]);
            harness.initialize(version, "{}").await;
            let call = |id: &str| line(Era::Legacy, id, "tools/call", ECHO);
            harness.send_line(format!("[{},{}]", call("10"), call("11")).as_bytes()).await;
            if taken {
                assert_eq!(text(&harness.answer_to("11").await), "hi");
                assert_eq!(text(&harness.answer_to("10").await), "hi");
            } else {
                assert_eq!(code(&harness.answer_to("null").await), -32600, "{version}");
                assert!(endpoint.requests_of("tools/call").is_empty());
            }
        }
    }
}

four_eras!(lines_may_end_as_on_windows_and_text_survives, |harness_era, endpoint_era| async {
    let (mut harness, _endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    for blank in ["", "\r", "  \t"] {
        harness.send_line(blank.as_bytes()).await;
    }
    let members = r#""name":"echo","arguments":{"text":"ü e\u0301 👩\u200d🚀"}"#;
    let call = line(harness_era, r#""w""#, "tools/call", members) + "\r";
    let answer = exchange(&mut harness, r#""w""#, &call).await;
    assert_eq!(text(&answer), "ü e\u{301} 👩\u{200d}🚀");
});
