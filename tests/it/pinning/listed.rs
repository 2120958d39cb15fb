//! The lists served are those verified at start.

use serde_json::json;

use super::{QUIET, SHUFFLED, printed_hash, quiet, refuses, works};
use crate::{
    opened::{leave, names, opened},
    support::{Endpoint, Era, Harness, Reply, four_eras},
};

four_eras!(a_call_outside_the_lists_is_refused_here_and_never_forwarded, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, quiet(endpoint_era)).await;
    let before = endpoint.requests().len();
    let template = |uri: &str| {
        json!({"ref":{"type":"ref/resource","uri":uri},"argument":{"name":"name","value":""}}).to_string()
    };
    let prompt =
        json!({"ref":{"type":"ref/prompt","name":"other"},"argument":{"name":"who","value":""}}).to_string();
    let cases = [
        ("tools/call", r#"{"name":"other","arguments":{}}"#.to_owned(), "unknown_tool"),
        ("tools/call", r#"{"name":"Echo","arguments":{}}"#.to_owned(), "unknown_tool"),
        ("tools/call", r#"{"name":"","arguments":{}}"#.to_owned(), "unknown_tool"),
        ("tools/call", r#"{"name":"greet","arguments":{}}"#.to_owned(), "unknown_tool"),
        ("prompts/get", r#"{"name":"other"}"#.to_owned(), "unknown_prompt"),
        ("prompts/get", r#"{"name":"echo"}"#.to_owned(), "unknown_prompt"),
        ("completion/complete", prompt, "unknown_prompt"),
        ("completion/complete", template("memo://{other}"), "unknown_template"),
        ("completion/complete", template("memo://one"), "unknown_template"),
    ];
    for (method, params, reason) in cases {
        let answer = harness.ask(method, &params).await;
        assert_eq!(answer.error()["data"]["reason"], reason, "{method} {params}: {}", answer.text());
    }
    assert_eq!(endpoint.requests().len(), before, "something was forwarded");
    assert!(!harness.ask("completion/complete", &template("memo://{name}")).await.is_error());
    works(&mut harness).await;
});

four_eras!(a_tool_that_the_endpoint_adds_later_is_not_there, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, quiet(endpoint_era)).await;
    endpoint.set_tools(r#"[{"name":"later","inputSchema":{"type":"object"}}]"#);
    let tools = harness.ask("tools/list", "{}").await.result();
    assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
    let answer = harness.call("later", "{}").await;
    assert_eq!(answer.error()["data"]["reason"], "unknown_tool");
    assert!(endpoint.requests_of("tools/call").is_empty());
});

four_eras!(what_is_served_keeps_the_order_of_the_start, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).sessions().capabilities(QUIET).start().await;
    let hash = printed_hash(&endpoint).await;
    let mut harness = Harness::start(&endpoint.url(), &["-v", "--expect-hash", &hash]);
    assert!(!harness.open(harness_era, "{}").await.is_error());
    let first = harness.ask("tools/list", "{}").await.result();
    endpoint.set_tools(SHUFFLED);
    endpoint.forget_session();
    works(&mut harness).await;
    harness.wait_stderr("opened again").await;
    let tools = harness.ask("tools/list", "{}").await.result();
    assert_eq!(tools.to_string(), first.to_string());
    assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
    leave(&mut harness).await;
    // and another start, with the same pin, serves the order that it sees
    let mut other = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
    assert!(!other.open(harness_era, "{}").await.is_error(), "{}", other.stderr_text());
    let tools = other.ask("tools/list", "{}").await.result();
    assert_eq!(names(&tools["tools"]), ["ask", "echo", "sleep"]);
});

four_eras!(the_list_of_resources_is_none_of_the_surface, |harness_era, endpoint_era| async {
    let endpoint = quiet(endpoint_era).start().await;
    let hash = printed_hash(&endpoint).await;
    endpoint.change(|surface| {
        surface.resources = r#"[{"uri":"memo://two","name":"two"}]"#.into();
        surface.server_info = r#"{"name":"fake","version":"2.0.0"}"#.into();
    });
    let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
    assert!(!harness.open(harness_era, "{}").await.is_error(), "{}", harness.stderr_text());
    assert_eq!(names(&harness.ask("resources/list", "{}").await.result()["resources"]), ["two"]);
});

four_eras!(every_page_of_every_list_is_part_of_the_surface, |harness_era, endpoint_era| async {
    let tool =
        |n: usize| format!(r#"{{"name":"tool-{n}","description":"{n}","inputSchema":{{"type":"object"}}}}"#);
    let page = |from: usize| format!("[{}]", (from..from + 50).map(tool).collect::<Vec<_>>().join(","));
    let pages = vec![page(0), page(50), page(100)];
    let endpoint = quiet(endpoint_era).tool_pages(pages.clone()).start().await;
    let hash = printed_hash(&endpoint).await;
    let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
    assert!(!harness.open(harness_era, "{}").await.is_error(), "{}", harness.stderr_text());
    let tools = harness.ask("tools/list", "{}").await.result();
    assert_eq!(tools["tools"].as_array().unwrap().len(), 150);
    assert!(tools.get("nextCursor").is_none());
    let last = pages[2].replace(r#""description":"149""#, r#""description":"150""#);
    assert_ne!(last, pages[2]);
    endpoint.change(|surface| surface.tool_pages[2] = last);
    let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
    refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
});

four_eras!(any_member_of_an_item_counts, |harness_era, endpoint_era| async {
    let plain = r#"{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"icons":[{"src":"a"}],"_meta":{"x":1},"n":12345678901234567890}"#;
    let endpoint = quiet(endpoint_era).tools(&format!("[{plain}]")).start().await;
    let hash = printed_hash(&endpoint).await;
    for (from, to) in [
        ("true", "false"),
        (r#","annotations":{"readOnlyHint":true}"#, ""),
        (r#""src":"a""#, r#""src":"b""#),
        (r#""x":1"#, r#""x":2"#),
        ("12345678901234567890", "12345678901234567891"),
        (r#""_meta""#, r#""title":"T","_meta""#),
        (r#""type":"object""#, r#""type":"object","default":{}"#),
    ] {
        let changed = plain.replacen(from, to, 1);
        assert_ne!(changed, plain);
        endpoint.set_tools(&format!("[{changed}]"));
        let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
        refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
    }
    endpoint.set_tools(&format!("[{plain}]"));
    type Change = fn(&mut crate::support::Surface);
    let changes: [Change; 3] = [
        |surface| surface.instructions = Some(r#""Be long.""#.into()),
        |surface| surface.prompts = surface.prompts.replace("Say hello.", "Say bye."),
        |surface| {
            surface.templates =
                surface.templates.replace(r#""name":"memo""#, r#""name":"m","mimeType":"x/y""#)
        },
    ];
    for change in changes {
        let endpoint = quiet(endpoint_era).tools(&format!("[{plain}]")).start().await;
        endpoint.change(change);
        let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
        refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
    }
});

four_eras!(ten_thousand_tools_are_fine, |harness_era, endpoint_era| async {
    let tools: Vec<_> =
        (0..10_000).map(|n| format!(r#"{{"name":"tool-{n}","inputSchema":{{"type":"object"}}}}"#)).collect();
    let endpoint = quiet(endpoint_era).tools(&format!("[{}]", tools.join(","))).start().await;
    let hash = printed_hash(&endpoint).await;
    let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &hash]);
    assert!(!harness.open(harness_era, "{}").await.is_error());
    let listed = harness.ask("tools/list", "{}").await.result();
    assert_eq!(listed["tools"].as_array().unwrap().len(), 10_000);
    let answer = harness.call("tool-10000", "{}").await;
    assert_eq!(answer.error()["data"]["reason"], "unknown_tool");
    harness.call("tool-9999", "{}").await;
    assert_eq!(endpoint.requests_of("tools/call").len(), 1);
});

four_eras!(lists_without_an_end_or_a_meaning_are_69_with_one_line, |harness_era, endpoint_era| async {
    let tool = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
    let other = r#"{"name":"other","inputSchema":{"type":"object"}}"#;
    let page = |items: &str, more: &str| {
        format!(r#"{{"resultType":"complete","tools":[{items}]{more},"ttlMs":0,"cacheScope":"private"}}"#)
    };
    let again = r#","nextCursor":"again""#;
    let cases = [
        (page("", again), page("", again), "again"),
        (page(&format!("{tool},{tool}"), ""), String::new(), "echo"),
        (page(tool, again), page(tool, ""), "echo"),
        (page(tool, again), page(&format!("{other},{other}"), ""), "other"),
        (page(r#"{"title":"nameless"}"#, ""), String::new(), "name"),
        (page(r#"{"name":7}"#, ""), String::new(), "name"),
    ];
    for (first, second, named) in cases {
        let endpoint = quiet(endpoint_era).start().await;
        endpoint.set("tools/list", move |request| {
            Reply::result(if request.param("cursor").is_null() { first.clone() } else { second.clone() })
        });
        let mut harness = Harness::start(&endpoint.url(), &[]);
        let stderr = refuses(&mut harness, harness_era, None, 69).await;
        let lines: Vec<_> = stderr.lines().filter(|line| line.contains("tools/list")).collect();
        assert_eq!(lines.len(), 1, "{stderr}");
        assert!(lines[0].contains(named), "{stderr}");
    }
});
