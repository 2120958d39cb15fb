//! Event streams: what arrives on them, and which may be taken up again after a break.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use serde_json::{Value, json};

use crate::{
    opened::{BOTH, FORMS, assert_own, assert_reason, cacheable, leave, opened, opened_with, posted, text},
    support::{Endpoint, EndpointBuilder, Era, Fate, Recorded, Reply, Script, four_eras},
};

four_eras!(answers_as_events_are_as_good_as_answers_as_json, |harness_era, endpoint_era| async {
    let (mut harness, _endpoint) = opened(harness_era, Endpoint::era(endpoint_era).sse()).await;
    assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
    assert_eq!(harness.ask("tools/list", "{}").await.result()["tools"][0]["name"], "echo");
    assert!(!harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await.is_error());
});

four_eras!(media_types_are_read_without_case_and_parameters, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    let body = |request: &Recorded| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","content":[{{"type":"text","text":"hi"}}]}}}}"#,
            request.id_raw()
        )
    };
    endpoint
        .set("tools/call", move |request| Reply::full(200, "Application/JSON;Charset=UTF-8", body(request)));
    assert_eq!(text(&harness.call("echo", "{}").await), "hi");
    endpoint.set("tools/call", move |request| {
        Reply::full(
            200,
            "text/event-stream; charset=utf-8",
            format!("\u{feff}: hello\r\nevent: message\r\ndata: {}\r\n\r\n", body(request)),
        )
    });
    assert_eq!(text(&harness.call("echo", "{}").await), "hi");
    endpoint.set("tools/call", move |request| Reply::full(200, "text/html", body(request)));
    let answer = harness.call("echo", "{}").await;
    assert_own(&answer);
    assert!(answer.error()["message"].as_str().unwrap().contains("text/html"), "{}", answer.text());
});

four_eras!(the_rest_of_a_stream_is_no_part_of_the_answer, |harness_era, endpoint_era| async {
    let chatty = |_: &Recorded| {
        Reply::sse(
            Script::new()
                .comment("keep-alive")
                .raw("event: other\ndata: not for us\n\n")
                .raw("data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/unheard_of\"}\n\n")
                .result(r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}]}"#)
                .hang(),
        )
    };
    let endpoint = Endpoint::era(endpoint_era).on("tools/call", chatty);
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    assert_eq!(text(&harness.call("echo", "{}").await), "hi");
    let call = endpoint.arrived("tools/call", 0).await;
    endpoint.client_closed(call.order).await;
    assert!(endpoint.requests_of("notifications/cancelled").is_empty(), "an answered call is not cancelled");
});

/// A legacy endpoint whose `tools/call` breaks off after an event with an id, and whose GET brings the answer.
fn breaking_off(cut: bool) -> EndpointBuilder {
    let id = Arc::new(Mutex::new(String::new()));
    let held = id.clone();
    Endpoint::legacy()
        .sessions()
        .on("tools/call", move |request| {
            *held.lock().unwrap() = request.id_raw();
            let script = Script::new().id("call-1").retry(1);
            Reply::sse(if cut { script.cut() } else { script })
        })
        .on("GET", move |request| match request.header("last-event-id") {
            Some("call-1") => Reply::sse(Script::new().event(format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"late"}}]}}}}"#,
                id.lock().unwrap()
            ))),
            _ => Reply::sse(Script::new().hang()),
        })
}

#[tokio::test]
async fn a_call_whose_stream_broke_off_after_an_event_id_is_taken_up_by_get() {
    for (harness_era, cut) in BOTH.into_iter().flat_map(|era| [(era, true), (era, false)]) {
        let (mut harness, endpoint) = opened(harness_era, breaking_off(cut)).await;
        assert_eq!(text(&harness.call("echo", "{}").await), "late");
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
        let resumed: Vec<_> = endpoint.requests_of("GET");
        let resumed: Vec<_> = resumed.iter().filter(|get| get.header("last-event-id").is_some()).collect();
        assert_eq!(resumed.len(), 1);
        assert_eq!(resumed[0].header("mcp-session-id"), Some("session-0"));
    }
}

#[tokio::test]
async fn a_resumed_stream_that_breaks_again_goes_on_from_its_own_last_event() {
    let id = Arc::new(Mutex::new(String::new()));
    let held = id.clone();
    let endpoint = Endpoint::legacy()
        .on("tools/call", move |request| {
            *held.lock().unwrap() = request.id_raw();
            Reply::sse(Script::new().id("a").retry(1).cut())
        })
        .on("GET", move |request| match request.header("last-event-id") {
            Some("a") => Reply::sse(Script::new().id("b").cut()),
            Some("b") => Reply::sse(Script::new().event(format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"late"}}]}}}}"#,
                id.lock().unwrap()
            ))),
            _ => Reply::status(405),
        });
    let (mut harness, endpoint) = opened(Era::Legacy, endpoint).await;
    assert_eq!(text(&harness.call("echo", "{}").await), "late");
    assert_eq!(endpoint.requests_of("tools/call").len(), 1);
}

#[tokio::test]
async fn a_broken_call_without_an_event_id_is_lost_and_not_repeated() {
    for harness_era in BOTH {
        let endpoint = Endpoint::legacy().on("tools/call", |_| Reply::sse(Script::new().retry(1).cut()));
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        assert_reason(&harness.call("echo", "{}").await, "connection_lost");
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn event_ids_mean_nothing_to_a_modern_endpoint() {
    for harness_era in BOTH {
        let endpoint =
            Endpoint::modern().on("tools/call", |_| Reply::sse(Script::new().id("a").retry(1).cut()));
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        assert_reason(&harness.call("echo", "{}").await, "connection_lost");
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
        assert!(endpoint.requests_of("GET").is_empty());
    }
}

#[tokio::test]
async fn a_read_whose_answer_broke_off_is_sent_again_to_a_modern_endpoint() {
    for harness_era in BOTH {
        let count = AtomicUsize::new(0);
        let memo = cacheable(Era::Modern, r#""contents":[{"uri":"memo://one","text":"a memo"}]"#);
        let endpoint = Endpoint::modern().on("resources/read", move |_| match count.fetch_add(1, Relaxed) {
            0 => Reply::cut_json("{\"jsonrpc\":\"2.0\",", 5),
            _ => Reply::result(memo.clone()),
        });
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        let answer = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
        assert_eq!(answer.result()["contents"][0]["text"], "a memo");
        let reads = endpoint.requests_of("resources/read");
        assert_eq!(reads.len(), 2);
        assert_ne!(reads[0].json["id"], reads[1].json["id"], "a new request has a new id");
    }
}

#[tokio::test]
async fn what_the_endpoint_asks_outside_of_a_call_is_answered_by_the_program() {
    for harness_era in BOTH {
        let can_all = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;
        let (harness, endpoint) = opened_with(harness_era, Endpoint::legacy(), can_all, &[]).await;
        endpoint.get_streams(1).await;
        let push = |id: u32, method: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{}}}}"#)
        };
        endpoint.push(&push(1, "ping")).await;
        endpoint.push(&push(2, "sampling/createMessage")).await;
        endpoint.push(&push(3, "roots/list")).await;
        endpoint.push(&push(4, "unheard/of")).await;
        assert_eq!(posted(&endpoint, &json!(1)).await["result"], json!({}));
        for id in [2, 3, 4] {
            assert_eq!(posted(&endpoint, &json!(id)).await["error"]["code"], json!(-32601));
        }
        let asked = |line: &Value| line["method"].is_string() && line.get("id").is_some();
        assert!(!harness.lines().iter().any(asked), "{:?}", harness.lines());
    }
}

#[tokio::test]
async fn a_question_outside_of_a_call_is_cancelled_for_a_modern_harness() {
    let (_harness, endpoint) = opened_with(Era::Modern, Endpoint::legacy(), FORMS, &[]).await;
    endpoint.get_streams(1).await;
    endpoint.push(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#).await;
    assert_eq!(posted(&endpoint, &json!("q")).await["result"], json!({"action":"cancel"}));
}

#[tokio::test]
async fn a_get_stream_that_is_not_offered_is_not_asked_for_again() {
    for status in [405, 404, 400, 501] {
        let (mut harness, endpoint) = opened(Era::Legacy, Endpoint::legacy().refuse_get(status)).await;
        let refused = endpoint.arrived("GET", 0).await;
        assert_eq!(endpoint.fate_of(refused.order).await, Fate::Answered);
        assert_eq!(text(&harness.call("echo", r#"{"text":"hi"}"#).await), "hi");
        leave(&mut harness).await;
        assert_eq!(endpoint.requests_of("GET").len(), 1);
    }
}

#[tokio::test]
async fn a_get_stream_that_broke_goes_on_from_its_last_event() {
    for harness_era in BOTH {
        let (_harness, endpoint) = opened(harness_era, Endpoint::legacy()).await;
        endpoint.get_streams(1).await;
        endpoint.push_raw("id: e-17\ndata:\n\nretry: 1\n\n").await;
        endpoint.cut_get_streams().await;
        let again = endpoint.arrived("GET", 1).await;
        assert_eq!(again.header("last-event-id"), Some("e-17"));
        assert_eq!(endpoint.arrived("GET", 0).await.header("last-event-id"), None);
    }
}

#[tokio::test]
async fn a_modern_endpoint_that_sends_a_request_fails_the_call() {
    for harness_era in BOTH {
        let asking = |_: &Recorded| {
            let ask =
                Script::new().request("1", "elicitation/create", r#"{"message":"?","requestedSchema":{}}"#);
            Reply::sse(ask.result(r#"{"resultType":"complete","content":[]}"#))
        };
        let endpoint = Endpoint::modern().on("tools/call", asking);
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
        assert!(harness.call("echo", "{}").await.is_error());
    }
}
