//! What goes over and comes back: tools, prompts, templates, resources, completion, and what stays here.

use serde_json::{Value, json};

use crate::{
    opened::{BOTH, FORMS, cacheable, code, complete, declared, meta_raw, names, opened, opened_with, text},
    support::{Answer, Endpoint, EndpointBuilder, Era, Harness, LEGACY, Reply, four_eras},
};

/// Asserts the frame that results of an era have, and gives what is in it.
fn framed(answer: &Answer, harness_era: Era, cached: bool) -> Value {
    let result = answer.result();
    if harness_era == Era::Modern {
        assert_eq!(result["resultType"], "complete", "{result}");
    } else {
        assert!(result.get("resultType").is_none(), "{result}");
    }
    if cached && harness_era == Era::Modern {
        assert!(result["ttlMs"].is_u64(), "{result}");
        assert!(["private", "public"].contains(&result["cacheScope"].as_str().unwrap()), "{result}");
    } else {
        assert!(result.get("ttlMs").is_none() && result.get("cacheScope").is_none(), "{result}");
    }
    result
}

four_eras!(a_tool_is_called_and_its_result_comes_back, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    let answer = harness.call("echo", r#"{"text":"grüß","n":1.0}"#).await;
    framed(&answer, harness_era, false);
    assert_eq!(text(&answer), "grüß");
    let call = endpoint.arrived("tools/call", 0).await;
    assert_eq!(*call.param("arguments"), json!({"text":"grüß","n":1.0}));
    assert!(call.json["id"].is_u64(), "ids of the program's own");
});

four_eras!(lists_are_served_from_what_was_read_at_start, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    let lists = [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/templates/list", "resourceTemplates"),
    ];
    for (method, member) in lists {
        let list = framed(&harness.ask(method, "{}").await, harness_era, true);
        assert!(list.get("nextCursor").is_none(), "{list}");
        assert!(!list[member].as_array().unwrap().is_empty(), "{list}");
        assert_eq!(endpoint.requests_of(method).len(), 1, "{method} is not asked for again");
    }
});

four_eras!(resources_are_listed_and_read_at_the_endpoint, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    assert!(endpoint.requests_of("resources/list").is_empty());
    for _ in 0..2 {
        let list = framed(&harness.ask("resources/list", "{}").await, harness_era, true);
        assert_eq!(list["resources"][0]["uri"], "memo://one");
    }
    assert_eq!(endpoint.requests_of("resources/list").len(), 2);
    let read = framed(&harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await, harness_era, true);
    assert_eq!(read["contents"], json!([{"uri":"memo://one","mimeType":"text/plain","text":"a memo"}]));
    let unknown = harness.ask("resources/read", r#"{"uri":"nothing://here"}"#).await;
    assert_eq!(
        code(&unknown),
        if endpoint_era == Era::Modern { -32602 } else { -32002 },
        "passed as it came"
    );
});

four_eras!(the_cursor_of_a_forwarded_list_is_the_endpoints_own, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).on("resources/list", move |request| {
        let members = match request.param("cursor").as_str() {
            None => r#""resources":[],"nextCursor":"""#,
            Some("") => r#""resources":[],"nextCursor":"é/2""#,
            Some("é/2") => r#""resources":[]"#,
            Some(_) => return Reply::error_code(-32602, "bad cursor"),
        };
        Reply::result(cacheable(endpoint_era, members))
    });
    let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
    assert_eq!(harness.ask("resources/list", "{}").await.result()["nextCursor"], "");
    assert_eq!(harness.ask("resources/list", r#"{"cursor":""}"#).await.result()["nextCursor"], "é/2");
    let last = harness.ask("resources/list", r#"{"cursor":"é/2"}"#).await.result();
    assert!(last.get("nextCursor").is_none(), "{last}");
    assert_eq!(code(&harness.ask("resources/list", r#"{"cursor":"x"}"#).await), -32602);
});

four_eras!(a_prompt_is_got_from_the_endpoint, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    let answer = harness.ask("prompts/get", r#"{"name":"greet","arguments":{"who":"Ada"}}"#).await;
    let prompt = framed(&answer, harness_era, false);
    assert_eq!(prompt["messages"][0]["content"]["text"], "Say hello.");
    assert_eq!(*endpoint.arrived("prompts/get", 0).await.param("arguments"), json!({"who":"Ada"}));
});

four_eras!(completion_is_asked_of_the_endpoint, |harness_era, endpoint_era| async {
    let members = r#""completion":{"values":["Ada","Adam"],"total":2,"hasMore":false}"#;
    let endpoint = Endpoint::era(endpoint_era)
        .capabilities(r#"{"completions":{},"prompts":{}}"#)
        .on("completion/complete", move |_| Reply::result(complete(endpoint_era, members)));
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let params = r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"},"context":{"arguments":{"x":"y"}}}"#;
    let answer = framed(&harness.ask("completion/complete", params).await, harness_era, false);
    assert_eq!(answer["completion"], json!({"values":["Ada","Adam"],"total":2,"hasMore":false}));
    let asked = endpoint.arrived("completion/complete", 0).await;
    for member in ["ref", "argument", "context"] {
        assert_eq!(*asked.param(member), serde_json::from_str::<Value>(params).unwrap()[member]);
    }
});

four_eras!(what_is_not_listed_is_refused_here_and_never_forwarded, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    for name in ["rm", "Echo", "echo ", ""] {
        assert_eq!(code(&harness.call(name, "{}").await), -32602, "{name:?}");
        assert_eq!(
            code(&harness.ask("prompts/get", &json!({"name":name}).to_string()).await),
            -32602,
            "{name:?}"
        );
    }
    assert_eq!(code(&harness.ask("tools/call", "{}").await), -32602);
    assert_eq!(code(&harness.ask("tools/call", r#"{"name":7}"#).await), -32602);
    assert!(endpoint.requests_of("tools/call").is_empty() && endpoint.requests_of("prompts/get").is_empty());
    assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
});

four_eras!(what_the_endpoint_does_not_offer_is_not_found, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).capabilities("{}")).await;
    for method in ["tools/list", "prompts/list", "resources/templates/list", "skills/list"] {
        assert_eq!(code(&harness.ask(method, "{}").await), -32601, "{method}");
        assert!(endpoint.requests_of(method).is_empty(), "{method}");
    }
});

four_eras!(errors_of_the_endpoint_pass_as_they_are, |harness_era, endpoint_era| async {
    const ERROR: &str = r#"{"code":-31999,"message":"no \u00fc","data":{"n":1e3,"a":[null]},"x":{}}"#;
    let endpoint = Endpoint::era(endpoint_era).on("tools/call", |_| Reply::error(ERROR));
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let answer = harness.call("echo", "{}").await;
    assert!(answer.text().contains(&format!(r#""error":{ERROR}"#)), "{}", answer.text());
    // and those that come with a status that is no success
    endpoint.set("tools/call", |_| Reply::error(ERROR).with_status(400));
    let answer = harness.call("echo", "{}").await;
    assert!(answer.text().contains(&format!(r#""error":{ERROR}"#)), "{}", answer.text());
});

four_eras!(a_failure_inside_a_tool_is_a_result, |harness_era, endpoint_era| async {
    let members = r#""content":[{"type":"text","text":"out of fuel"}],"isError":true"#;
    let endpoint =
        Endpoint::era(endpoint_era).on("tools/call", move |_| Reply::result(complete(endpoint_era, members)));
    let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
    let answer = harness.call("echo", "{}").await;
    assert_eq!(framed(&answer, harness_era, false)["isError"], true);
    assert_eq!(text(&answer), "out of fuel");
});

four_eras!(
    a_request_keeps_what_is_its_own_and_gets_the_programs_envelope,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened_with(harness_era, Endpoint::era(endpoint_era), FORMS, &[]).await;
        let params = r#"{"name":"echo","x-odd":{"a":[1e3]},"arguments":{"text":"hi"},"task":{"ttl":1},"_meta":{"com.example/n":1.0,"traceparent":"00-ab-cd-01","io.modelcontextprotocol/unheard":1}}"#;
        assert_eq!(text(&harness.ask("tools/call", params).await), "hi");
        let call = endpoint.arrived("tools/call", 0).await;
        let meta = meta_raw(&call);
        assert_eq!(meta["com.example/n"], "1.0");
        assert_eq!(meta["traceparent"], r#""00-ab-cd-01""#);
        assert!(!meta.contains_key("io.modelcontextprotocol/unheard"), "{meta:?}");
        assert!(call.param("task").is_null(), "tasks are not offered");
        assert_eq!(*call.param("x-odd"), json!({"a":[1e3]}));
        assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{}}}));
        let own = meta.keys().filter(|key| key.starts_with("io.modelcontextprotocol/")).count();
        if endpoint_era == Era::Modern {
            let info: Value = serde_json::from_str(&meta["io.modelcontextprotocol/clientInfo"]).unwrap();
            assert_eq!(info["name"], "mcp-hasp");
            assert_eq!(own, 3, "{meta:?}");
        } else {
            assert_eq!(own, 0, "{meta:?}");
            assert_eq!(endpoint.arrived("initialize", 0).await.param("clientInfo")["name"], "mcp-hasp");
        }
    }
);

#[tokio::test]
async fn each_modern_request_declares_what_it_said_itself() {
    let (mut harness, endpoint) = opened_with(Era::Modern, Endpoint::modern(), FORMS, &[]).await;
    let all = r#"{"elicitation":{},"sampling":{},"roots":{"listChanged":true},"tasks":{},"extensions":{"com.example/x":{},"io.modelcontextprotocol/skills":{"directoryRead":true}},"experimental":{"y":{}}}"#;
    for capabilities in [FORMS, "{}", all] {
        harness.speak_modern(capabilities);
        harness.call("echo", r#"{"text":"hi"}"#).await;
    }
    let mut seen = Vec::new();
    for nth in 0..3 {
        let call = endpoint.arrived("tools/call", nth).await;
        seen.push(call.param("_meta")["io.modelcontextprotocol/clientCapabilities"].clone());
    }
    assert_eq!(seen[0], json!({"elicitation":{"form":{}}}));
    assert_eq!(seen[1], json!({}));
    let relayed = json!({"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}});
    assert_eq!(seen[2], relayed);
}

/// An endpoint whose tools come on those pages.
fn paged(era: Era, page: impl Fn(Option<&str>) -> String + Send + Sync + 'static) -> EndpointBuilder {
    Endpoint::era(era)
        .on("tools/list", move |request| {
            Reply::result(cacheable(era, &page(request.param("cursor").as_str())))
        })
        .on("tools/call", |_| Reply::text("called"))
}

fn page(name: &str, next: Option<&str>) -> String {
    let next = next.map_or_else(String::new, |next| format!(r#","nextCursor":"{next}""#));
    format!(r#""tools":[{{"name":"{name}","inputSchema":{{"type":"object"}}}}]{next}"#)
}

four_eras!(three_pages_are_served_as_one_and_cursors_refused, |harness_era, endpoint_era| async {
    let pages =
        ["a", "b", "c"].map(|name| format!(r#"[{{"name":"{name}","inputSchema":{{"type":"object"}}}}]"#));
    let endpoint = Endpoint::era(endpoint_era).tool_pages(pages.to_vec());
    let (mut harness, endpoint) =
        opened(harness_era, endpoint.on("tools/call", |_| Reply::text("called"))).await;
    let list = harness.ask("tools/list", "{}").await.result();
    assert_eq!(names(&list["tools"]), ["a", "b", "c"]);
    assert!(list.get("nextCursor").is_none(), "{list}");
    for (method, cursor) in [
        ("tools/list", "page-1"),
        ("tools/list", ""),
        ("prompts/list", "x"),
        ("resources/templates/list", "x"),
    ] {
        let answer = harness.ask(method, &json!({"cursor":cursor}).to_string()).await;
        assert_eq!(code(&answer), -32602, "{method} {cursor:?}");
    }
    assert_eq!(endpoint.requests_of("tools/list").len(), 3);
    assert_eq!(text(&harness.call("c", "{}").await), "called");
});

four_eras!(an_empty_cursor_is_a_cursor, |harness_era, endpoint_era| async {
    let pages = |cursor: Option<&str>| match cursor {
        None => page("a", Some("")),
        Some("") => page("b", Some("last")),
        Some(_) => page("c", None),
    };
    let (mut harness, endpoint) = opened(harness_era, paged(endpoint_era, pages)).await;
    let list = harness.ask("tools/list", "{}").await.result();
    assert_eq!(names(&list["tools"]), ["a", "b", "c"]);
    let asked: Vec<_> =
        endpoint.requests_of("tools/list").iter().map(|list| list.param("cursor").clone()).collect();
    assert_eq!(asked, [json!(null), json!(""), json!("last")]);
    assert_eq!(text(&harness.call("c", "{}").await), "called");
});

#[tokio::test]
async fn a_list_whose_cursor_comes_back_has_no_end_and_is_not_served() {
    for endpoint_era in BOTH {
        let around = |cursor: Option<&str>| match cursor {
            None => page("a", Some("1")),
            Some("1") => page("b", Some("2")),
            Some(_) => page("c", Some("1")),
        };
        let endpoint = paged(endpoint_era, around).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        if endpoint_era == Era::Legacy {
            assert!(harness.initialize(LEGACY, "{}").await.is_error());
        }
        assert_eq!(harness.wait_exit().await.0, 69, "{}", harness.stderr_text());
        assert!(harness.stderr_text().contains("cursor"), "{}", harness.stderr_text());
        assert!(endpoint.requests_of("tools/list").len() <= 4);
    }
}

#[tokio::test]
async fn a_name_that_two_pages_share_is_not_served_and_named() {
    for endpoint_era in BOTH {
        let pages = ["one", "same", "same"]
            .map(|name| format!(r#"[{{"name":"{name}","inputSchema":{{"type":"object"}}}}]"#));
        let endpoint = Endpoint::era(endpoint_era).tool_pages(pages.to_vec()).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        if endpoint_era == Era::Legacy {
            assert!(harness.initialize(LEGACY, "{}").await.is_error());
        }
        assert_eq!(harness.wait_exit().await.0, 69, "{}", harness.stderr_text());
        assert!(harness.stderr_text().contains("same"), "{}", harness.stderr_text());
    }
}

#[tokio::test]
async fn a_modern_endpoint_is_sent_no_notifications() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::modern()).await;
        for method in
            ["notifications/roots/list_changed", "notifications/progress", "notifications/unheard_of"]
        {
            harness.notify(method, r#"{"progressToken":1,"progress":1}"#).await;
        }
        assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
        assert!(endpoint.requests().iter().all(|request| !request.is_notification()));
    }
}
