//! Many calls at once, and harnesses that do not read.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;

use super::{Phase, in_phase, subscribe};
use crate::support::{
    Endpoint, Era, Harness, Recorded, Reply, Script, event_text, four_eras, notification_text,
};

const SOON: Duration = Duration::from_secs(2);
const COUNT: usize = 200;

fn number(request: &Recorded) -> usize {
    usize::try_from(request.param("arguments")["n"].as_u64().unwrap()).unwrap()
}

/// An endpoint whose `sleep` number n waits for the gate number n and answers `n`.
fn gated(era: Era) -> (crate::support::EndpointBuilder, Vec<Arc<Notify>>) {
    let gates: Vec<Arc<Notify>> = (0..COUNT).map(|_| Arc::default()).collect();
    let held = gates.clone();
    let builder = Endpoint::era(era).on("tools/call", move |request| {
        if request.subject() == "echo" {
            return Reply::text("quick");
        }
        let n = number(request);
        let text = format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{n}"}}]}}"#);
        Reply::sse(Script::new().wait(&held[n]).result(text))
    });
    (builder, gates)
}

async fn start_calls(endpoint: &Endpoint, harness: &mut Harness) -> Vec<u64> {
    let mut calls = Vec::new();
    for n in 0..COUNT {
        calls.push(harness.start_call("sleep", &format!(r#"{{"n":{n}}}"#)).await);
    }
    endpoint.arrived("tools/call", COUNT - 1).await;
    calls
}

four_eras!(a_quick_call_passes_two_hundred_in_flight, |harness_era, endpoint_era| async {
    let (builder, gates) = gated(endpoint_era);
    let endpoint = builder.start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let calls = start_calls(&endpoint, &mut harness).await;
    for _ in 0..3 {
        assert_eq!(harness.call("echo", "{}").await.result()["content"][0]["text"], "quick");
    }
    gates.iter().for_each(|gate| gate.notify_one());
    for (n, id) in calls.into_iter().enumerate() {
        assert_eq!(harness.answer(id).await.result()["content"][0]["text"], n.to_string());
    }
});

four_eras!(answers_out_of_order_go_to_the_requests_that_asked, |harness_era, endpoint_era| async {
    let (builder, gates) = gated(endpoint_era);
    let endpoint = builder.start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let calls = start_calls(&endpoint, &mut harness).await;
    // 7 and 200 have no common divisor, so that each is met once
    for n in (0..COUNT).map(|k| (COUNT - 1 - k) * 7 % COUNT) {
        gates[n].notify_one();
        let answer = harness.answer(calls[n]).await;
        assert_eq!(answer.result()["content"][0]["text"], n.to_string());
    }
});

four_eras!(a_silent_call_is_answered_in_the_end, |harness_era, endpoint_era| async {
    let (builder, gates) = gated(endpoint_era);
    let endpoint = builder.start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let silent = harness.start_call("sleep", r#"{"n":0}"#).await;
    for _ in 0..100 {
        harness.call("echo", "{}").await.result();
    }
    gates[0].notify_one();
    assert_eq!(harness.answer(silent).await.result()["content"][0]["text"], "0");
});

/// The lines of a whole short session, written in one go.
fn short_session(era: Era) -> Vec<String> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    match era {
        Era::Legacy => vec![
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"fast"}}}"#.to_owned(),
        ],
        Era::Modern => vec![
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{{{meta}}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"fast"}},{meta}}}}}"#),
        ],
    }
}

four_eras!(a_session_written_in_one_go_is_answered_whole, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.send_at_once(&short_session(harness_era)).await;
    harness.close_stdin();
    harness.answer_to("0").await.result();
    assert_eq!(harness.answer_to("1").await.result()["tools"].as_array().unwrap().len(), 3);
    assert_eq!(harness.answer_to("2").await.result()["content"][0]["text"], "fast");
    assert_eq!(harness.wait_exit().await.0, 0);
    assert_eq!(endpoint.session(), None);
});

four_eras!(a_harness_that_never_reads_stderr_stalls_nothing, |harness_era, endpoint_era| async {
    let full = |launch: crate::support::Launch| launch.arg("-vv").stderr_full();
    let (endpoint, mut harness) = in_phase(Phase::Idle, harness_era, endpoint_era, full).await;
    for n in 0..200 {
        let answer = harness.call("echo", &format!(r#"{{"text":"{n}"}}"#)).await;
        assert_eq!(answer.result()["content"][0]["text"], n.to_string());
    }
    harness.close_stdin();
    let (code, took) = harness.wait_exit().await;
    assert_eq!(code, 0);
    assert!(took < SOON, "{took:?}");
    assert_eq!(endpoint.session(), None);
});

#[tokio::test]
async fn a_start_that_fails_ends_although_nobody_reads_stderr() {
    let endpoint = Endpoint::legacy()
        .on("server/discover", |_| Reply::status(404))
        .on("initialize", |_| Reply::status(404))
        .start()
        .await;
    let mut harness = Harness::launch(&endpoint.url()).arg("-vv").stderr_full().start();
    assert!(harness.open(Era::Legacy, "{}").await.is_error());
    assert_eq!(harness.wait_exit().await.0, 69);
}

/// 20 MB of progress, in pieces of 20 kB, and then the answer.
fn flood(request: &Recorded) -> Reply {
    if request.subject() == "echo" {
        return Reply::text(request.param("arguments")["text"].as_str().unwrap_or_default());
    }
    let token = &request.param("_meta")["progressToken"];
    if token.is_null() || request.param("arguments")["flood"].is_null() {
        return Reply::sse(Script::new().hang());
    }
    let mut script = Script::new();
    for n in 0..1000 {
        let message = "x".repeat(20_000);
        let params = format!(r#"{{"progressToken":{token},"progress":{n},"message":"{message}"}}"#);
        script = script.raw(event_text(&notification_text("notifications/progress", &params)));
    }
    Reply::sse(script.result(r#"{"resultType":"complete","content":[]}"#))
}

const FLOOD: &str = r#"{"name":"sleep","arguments":{"flood":true},"_meta":{"progressToken":"p"}}"#;

async fn flooded(harness_era: Era, endpoint_era: Era) -> (Endpoint, Harness, u64) {
    let (endpoint, mut harness) = in_phase(Phase::Idle, harness_era, endpoint_era, |it| it).await;
    endpoint.set("tools/call", flood);
    harness.read_stdout(false);
    let id = harness.request("tools/call", FLOOD).await;
    endpoint.arrived("tools/call", 1).await;
    (endpoint, harness, id)
}

four_eras!(a_harness_that_does_not_read_for_a_while_stalls_nothing_else, |harness_era, endpoint_era| async {
    let (endpoint, mut harness, flooding) = flooded(harness_era, endpoint_era).await;
    #[cfg(target_os = "linux")]
    let before = crate::faults::peak_kilobytes(&harness);
    let cancelled = harness.start_call("sleep", "{}").await;
    let order = endpoint.arrived("tools/call", 2).await.order;
    let mut echoes = Vec::new();
    for n in 0..200 {
        echoes.push((n, harness.start_call("echo", &format!(r#"{{"text":"{n}"}}"#)).await));
        endpoint.arrived("tools/call", 3 + n).await;
    }
    harness.cancel(cancelled).await;
    if endpoint_era == Era::Modern {
        endpoint.client_closed(order).await;
    } else {
        endpoint.arrived("notifications/cancelled", 0).await;
    }
    harness.read_stdout(true);
    for (n, id) in echoes {
        assert_eq!(harness.answer(id).await.result()["content"][0]["text"], n.to_string());
    }
    harness.answer_within(&flooding.to_string(), Duration::from_secs(60)).await.result();
    let steps: Vec<u64> =
        harness.notifications().iter().filter_map(|one| one["params"]["progress"].as_u64()).collect();
    assert!(steps.is_sorted(), "progress comes in order");
    #[cfg(target_os = "linux")]
    {
        let more = crate::faults::peak_kilobytes(&harness) - before;
        // an allocator takes memory in pieces of some megabytes; to hold it all would take 20 and more
        assert!(more < 14_000, "{more} kB more for a harness that did not read");
    }
});

four_eras!(a_harness_that_does_not_read_can_still_leave, |harness_era, endpoint_era| async {
    let (endpoint, mut harness, _) = flooded(harness_era, endpoint_era).await;
    for n in 0..50 {
        harness.start_call("echo", &format!(r#"{{"text":"{n}"}}"#)).await;
        endpoint.arrived("tools/call", 2 + n).await;
    }
    harness.close_stdin();
    let (code, took) = harness.wait_exit_unread().await;
    assert_eq!(code, 0, "{}", harness.stderr_text());
    assert!(took < SOON, "{took:?}");
});

#[cfg(unix)]
four_eras!(a_signal_ends_it_although_nobody_reads, |harness_era, endpoint_era| async {
    let (endpoint, mut harness, _) = flooded(harness_era, endpoint_era).await;
    for n in 0..50 {
        harness.start_call("echo", &format!(r#"{{"text":"{n}"}}"#)).await;
        endpoint.arrived("tools/call", 2 + n).await;
    }
    harness.signal("TERM").await;
    let (code, took) = harness.wait_exit_unread().await;
    assert_eq!(code, 130, "{}", harness.stderr_text());
    assert!(took < SOON, "{took:?}");
});

four_eras!(a_subscription_does_not_count_as_a_call, |harness_era, endpoint_era| async {
    let (endpoint, mut harness) = in_phase(Phase::Idle, harness_era, endpoint_era, |it| it).await;
    for _ in 0..20 {
        subscribe(&mut harness, harness_era).await;
    }
    let answer = harness.call("echo", r#"{"text":"still quick"}"#).await;
    assert_eq!(answer.result()["content"][0]["text"], "still quick");
    drop(endpoint);
});
