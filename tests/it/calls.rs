//! Calls under way: side by side, with progress, cancelled.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    opened::{line, meta_raw, opened, text},
    support::{Endpoint, EndpointBuilder, Era, Harness, Recorded, Reply, Script, four_eras},
};

/// The result of a tool, good for both eras.
fn said(words: &str) -> String {
    format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{words}"}}]}}"#)
}

/// An endpoint whose calls wait, each at the gate that its argument `gate` numbers.
fn gated(era: Era, gates: &[Arc<Notify>]) -> EndpointBuilder {
    let gates = gates.to_vec();
    Endpoint::era(era).on("tools/call", move |call| {
        let gate = usize::try_from(call.param("arguments")["gate"].as_u64().unwrap()).unwrap();
        Reply::sse(Script::new().wait(&gates[gate]).result(said(&format!("through {gate}"))))
    })
}

fn gates(count: usize) -> Vec<Arc<Notify>> {
    (0..count).map(|_| Arc::default()).collect()
}

/// Calls through that gate with that id.
async fn call_through(harness: &mut Harness, era: Era, id: &str, gate: usize) {
    let members = format!(r#""name":"echo","arguments":{{"gate":{gate}}}"#);
    harness.send_line(line(era, id, "tools/call", &members).as_bytes()).await;
}

fn call_at(endpoint: &Endpoint, gate: usize) -> Recorded {
    let at = |call: &Recorded| call.param("arguments")["gate"] == gate;
    endpoint.requests_of("tools/call").into_iter().find(at).unwrap()
}

four_eras!(no_call_waits_behind_another_and_each_gets_its_own_answer, |harness_era, endpoint_era| async {
    let gates = gates(20);
    let (mut harness, endpoint) = opened(harness_era, gated(endpoint_era, &gates)).await;
    for gate in 0..gates.len() {
        call_through(&mut harness, harness_era, &format!(r#""c{gate}""#), gate).await;
    }
    endpoint.arrived("tools/call", gates.len() - 1).await;
    let read = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
    assert!(!read.is_error(), "{}", read.text());
    for (number, gate) in gates.iter().enumerate().rev() {
        gate.notify_one();
        let answer = harness.answer_to(&format!(r#""c{number}""#)).await;
        assert_eq!(text(&answer), format!("through {number}"));
    }
});

four_eras!(a_cancellation_reaches_the_one_call_it_names, |harness_era, endpoint_era| async {
    let gates = gates(3);
    let (mut harness, endpoint) = opened(harness_era, gated(endpoint_era, &gates)).await;
    for (gate, id) in ["11", r#""11""#, "0"].into_iter().enumerate() {
        call_through(&mut harness, harness_era, id, gate).await;
    }
    endpoint.arrived("tools/call", 2).await;
    // unknown ones first: nothing comes of them
    for id in ["777", r#""0""#, r#""""#] {
        harness.notify("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)).await;
    }
    harness.notify("notifications/cancelled", r#"{"requestId":"11","reason":"enough"}"#).await;
    let call = call_at(&endpoint, 1);
    match endpoint_era {
        Era::Modern => endpoint.client_closed(call.order).await,
        Era::Legacy => {
            let told = endpoint.arrived("notifications/cancelled", 0).await;
            assert_eq!(*told.param("requestId"), call.json["id"]);
        }
    }
    for (gate, id) in [(0, "11"), (2, "0")] {
        gates[gate].notify_one();
        assert_eq!(text(&harness.answer_to(id).await), format!("through {gate}"));
    }
    let told = endpoint.requests_of("notifications/cancelled").len();
    assert_eq!(told, usize::from(endpoint_era == Era::Legacy));
});

four_eras!(a_call_that_has_not_even_a_status_line_can_be_cancelled, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).on("tools/call", |_| Reply::hang());
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let id = harness.start_call("echo", "{}").await;
    let call = endpoint.arrived("tools/call", 0).await;
    harness.cancel(id).await;
    match endpoint_era {
        Era::Modern => endpoint.client_closed(call.order).await,
        Era::Legacy => {
            let told = endpoint.arrived("notifications/cancelled", 0).await;
            assert_eq!(*told.param("requestId"), call.json["id"]);
        }
    }
    assert!(!harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await.is_error());
});

four_eras!(other_requests_than_calls_are_cancelled_too, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).on("resources/read", |_| Reply::hang());
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    let id = harness.request("resources/read", r#"{"uri":"memo://one"}"#).await;
    let read = endpoint.arrived("resources/read", 0).await;
    harness.cancel(id).await;
    match endpoint_era {
        Era::Modern => endpoint.client_closed(read.order).await,
        Era::Legacy => {
            let told = endpoint.arrived("notifications/cancelled", 0).await;
            assert_eq!(*told.param("requestId"), read.json["id"]);
        }
    }
});

four_eras!(an_answered_call_cannot_be_cancelled_any_more, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    let id = harness.start_call("echo", r#"{"text":"hi"}"#).await;
    harness.answer(id).await;
    harness.cancel(id).await;
    harness.call("echo", r#"{"text":"hi"}"#).await;
    assert!(endpoint.requests_of("notifications/cancelled").is_empty());
});

/// Three steps of progress under that token, then the answer.
fn progressing(token: &str) -> Reply {
    let step = |script: Script, at: u32| {
        let params =
            format!(r#"{{"progressToken":{token},"progress":{at},"total":3,"message":"step {at}","x":1.0}}"#);
        script.notification("notifications/progress", &params)
    };
    Reply::sse((1..=3).fold(Script::new(), step).result(said("done")))
}

fn progress_endpoint(era: Era) -> EndpointBuilder {
    let progress = |request: &Recorded| progressing(&meta_raw(request)["progressToken"]);
    Endpoint::era(era).on("tools/call", progress)
}

fn is_progress(line: &Value) -> bool {
    line["method"] == "notifications/progress"
}

four_eras!(
    progress_arrives_in_order_before_the_answer_under_the_harnesses_own_token,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened(harness_era, progress_endpoint(endpoint_era)).await;
        let long = format!(r#""{}""#, "t".repeat(300));
        let tokens = ["0", r#""0""#, "-1", "9007199254740993", r#""caf\u00e9\/""#, r#""""#, &long];
        for (nth, token) in tokens.into_iter().enumerate() {
            let before = harness.lines().len();
            let params = format!(r#"{{"name":"echo","arguments":{{}},"_meta":{{"progressToken":{token}}}}}"#);
            let answer = harness.ask("tools/call", &params).await;
            assert_eq!(text(&answer), "done");
            assert_eq!(meta_raw(&endpoint.arrived("tools/call", nth).await)["progressToken"], token);
            let lines = &harness.lines()[before..];
            let expected: Value = serde_json::from_str(token).unwrap();
            let steps: Vec<_> = lines[..3].iter().map(|line| &line["params"]).collect();
            for (at, step) in (1..).zip(&steps) {
                let whole = json!({"progressToken":expected,"progress":at,"total":3,"message":format!("step {at}"),"x":1.0});
                assert_eq!(**step, whole);
            }
            assert_eq!(lines.len(), 4, "{lines:?}");
        }
    }
);

four_eras!(progress_that_nobody_asked_for_is_swallowed, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, progress_endpoint(endpoint_era)).await;
    assert_eq!(text(&harness.call("echo", "{}").await), "done");
    let token = &meta_raw(&endpoint.arrived("tools/call", 0).await)["progressToken"];
    assert!(token.starts_with(r#""mcp-hasp:"#), "the endpoint is asked for it all the same: {token}");
    assert!(!harness.lines().iter().any(is_progress), "{:?}", harness.lines());
});

four_eras!(progress_under_another_token_is_not_passed_on, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).on("tools/call", |_| progressing(r#""5""#));
    let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
    let params = r#"{"name":"echo","arguments":{},"_meta":{"progressToken":5}}"#;
    assert_eq!(text(&harness.ask("tools/call", params).await), "done");
    assert!(!harness.lines().iter().any(is_progress), "{:?}", harness.lines());
});

four_eras!(progress_of_calls_side_by_side_is_kept_apart, |harness_era, endpoint_era| async {
    let gate = Arc::new(Notify::new());
    let open = gate.clone();
    let endpoint = Endpoint::era(endpoint_era).on("tools/call", move |call| {
        let token = &meta_raw(call)["progressToken"];
        let params = format!(r#"{{"progressToken":{token},"progress":1}}"#);
        let script = Script::new().notification("notifications/progress", &params);
        let first = call.param("arguments")["first"] == true;
        Reply::sse(if first { script.wait(&gate) } else { script }.result(said("done")))
    });
    let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
    let call = |first: bool, token: &str| {
        format!(r#"{{"name":"echo","arguments":{{"first":{first}}},"_meta":{{"progressToken":{token}}}}}"#)
    };
    let first = harness.request("tools/call", &call(true, "1")).await;
    let progress = harness.next_notification("notifications/progress").await;
    assert_eq!(progress["params"]["progressToken"], json!(1));
    let second = harness.ask("tools/call", &call(false, r#""1""#)).await;
    assert_eq!(text(&second), "done");
    let progress = harness.next_notification("notifications/progress").await;
    assert_eq!(progress["params"]["progressToken"], json!("1"));
    open.notify_one();
    assert_eq!(text(&harness.answer(first).await), "done");
});

four_eras!(progress_of_a_read_arrives_as_well, |harness_era, endpoint_era| async {
    let memo = crate::opened::cacheable(endpoint_era, r#""contents":[]"#);
    let endpoint = Endpoint::era(endpoint_era).on("resources/read", move |read| {
        let token = &meta_raw(read)["progressToken"];
        let params = format!(r#"{{"progressToken":{token},"progress":0.5}}"#);
        Reply::sse(Script::new().notification("notifications/progress", &params).result(memo.clone()))
    });
    let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
    let params = r#"{"uri":"memo://one","_meta":{"progressToken":"r"}}"#;
    assert!(!harness.ask("resources/read", params).await.is_error());
    assert_eq!(harness.next_notification("notifications/progress").await["params"]["progress"], json!(0.5));
});
