//! An endpoint that goes away and comes back: errors meanwhile, and then it works as before.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::{Scene, faulty};
use crate::support::{Endpoint, Era, Harness, Reply, four_eras};
use tokio::sync::Notify;

async fn works(harness: &mut Harness) {
    let answer = harness.call("echo", r#"{"text":"back"}"#).await;
    assert_eq!(answer.result()["content"][0]["text"], "back", "{}", answer.text());
}

async fn is_unreachable(harness: &mut Harness, reasons: &[&str]) {
    let answer = harness.call("echo", r#"{"text":"anybody?"}"#).await;
    let reason = answer.error()["data"]["reason"].as_str().unwrap().to_owned();
    assert!(reasons.contains(&reason.as_str()), "{}", answer.text());
}

four_eras!(a_refused_connection_is_one_error_and_the_next_call_works, |harness_era, endpoint_era| async {
    let mut endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    for _ in 0..3 {
        endpoint.stop().await;
        // a pooled connection may have died under the first call
        is_unreachable(&mut harness, &["endpoint_unreachable", "connection_lost"]).await;
        is_unreachable(&mut harness, &["endpoint_unreachable"]).await;
        endpoint.start_again().await;
        works(&mut harness).await;
    }
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
});

four_eras!(every_call_in_flight_at_an_outage_gets_its_one_error, |harness_era, endpoint_era| async {
    let mut endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let mut calls = Vec::new();
    for n in 0..10 {
        calls.push(harness.start_call("sleep", &format!(r#"{{"n":{n}}}"#)).await);
    }
    endpoint.arrived("tools/call", 9).await;
    endpoint.stop().await;
    for id in calls {
        let answer = harness.answer(id).await;
        assert_eq!(answer.error()["data"]["reason"], "connection_lost", "{}", answer.text());
    }
    endpoint.start_again().await;
    works(&mut harness).await;
    let sleeps = endpoint.requests_of("tools/call");
    assert_eq!(sleeps.len(), 11, "none of the calls may be sent again");
});

four_eras!(a_restarted_endpoint_that_forgot_the_session_is_opened_again, |harness_era, endpoint_era| async {
    let mut endpoint = Endpoint::era(endpoint_era).sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    works(&mut harness).await;
    endpoint.stop().await;
    endpoint.start_again().await;
    works(&mut harness).await;
    works(&mut harness).await;
    endpoint.forget_session();
    works(&mut harness).await;
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    assert_eq!(endpoint.session(), None, "the session of last is given up");
});

four_eras!(calls_at_once_after_a_forgotten_session_all_work, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    works(&mut harness).await;
    let openings = endpoint.requests_of("initialize").len();
    endpoint.forget_session();
    let mut calls = Vec::new();
    for n in 0..20 {
        calls.push((n, harness.start_call("echo", &format!(r#"{{"text":"{n}"}}"#)).await));
    }
    for (n, id) in calls {
        assert_eq!(harness.answer(id).await.result()["content"][0]["text"], n.to_string());
    }
    let again = endpoint.requests_of("initialize").len() - openings;
    assert!(again <= 2, "one new session serves all calls, not {again}");
});

/// A session that every call loses again is bounded, and the process stays up.
#[tokio::test]
async fn a_session_that_is_lost_for_ever_is_an_error_and_no_loop() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let gate = Arc::new(Notify::new());
        let builder = faulty(Era::Legacy, &gate, |_| Reply::full(404, "text/plain", "no session")).sessions();
        let mut scene = Scene::on(harness_era, builder, gate, &[]).await;
        scene.fails(&["session_lost"], "{}").await;
        assert!(scene.broken_calls() <= 2, "{} calls", scene.broken_calls());
        assert!(scene.endpoint.requests_of("initialize").len() <= 3);
    }
}

four_eras!(a_read_whose_connection_broke_is_answered_once, |harness_era, endpoint_era| async {
    let count = Arc::new(AtomicUsize::new(0));
    let endpoint = Endpoint::era(endpoint_era).start().await;
    let broken = count.clone();
    endpoint.set("resources/read", move |_| {
        if broken.fetch_add(1, Ordering::Relaxed) == 0 {
            return Reply::close();
        }
        Reply::result(r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}"#)
    });
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let answer = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
    if answer.is_error() {
        assert_eq!(answer.error()["data"]["reason"], "connection_lost", "{}", answer.text());
    }
    assert!(count.load(Ordering::Relaxed) <= 2);
    works(&mut harness).await;
});

four_eras!(a_read_whose_connection_always_breaks_is_one_error, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).on("resources/read", |_| Reply::close()).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let answer = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
    assert_eq!(answer.error()["data"]["reason"], "connection_lost", "{}", answer.text());
    assert!(endpoint.requests_of("resources/read").len() <= 5);
    works(&mut harness).await;
});

/// A start that meets trouble which may pass tries a few times more.
async fn starts_after(endpoint_era: Era, trouble: fn() -> Reply) {
    let first = Arc::new(AtomicBool::new(true));
    let endpoint = Endpoint::era(endpoint_era).start().await;
    endpoint.set("tools/list", move |_| {
        if first.swap(false, Ordering::Relaxed) {
            return trouble();
        }
        Reply::result(
            r#"{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}"#,
        )
    });
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(endpoint_era, "{}").await.result();
    works(&mut harness).await;
}

#[tokio::test]
async fn a_503_at_start_is_tried_again() {
    starts_after(Era::Modern, || Reply::status(503)).await;
    starts_after(Era::Legacy, || Reply::status(503)).await;
}

#[tokio::test]
async fn a_429_at_start_is_tried_again_after_the_pause_that_was_asked_for() {
    starts_after(Era::Modern, || Reply::status(429).with_header("retry-after", "1")).await;
    starts_after(Era::Legacy, || Reply::status(429).with_header("retry-after", "soon")).await;
}

#[tokio::test]
async fn a_connection_that_breaks_at_start_is_tried_again() {
    starts_after(Era::Modern, Reply::close).await;
    starts_after(Era::Legacy, Reply::close).await;
}

/// The endpoint is not there yet when the program starts, and comes while it tries.
#[tokio::test]
async fn an_endpoint_that_comes_a_moment_late_is_found() {
    let mut endpoint = Endpoint::modern().start().await;
    endpoint.stop().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    let id = {
        harness.speak_modern("{}");
        harness.request("server/discover", "{}").await
    };
    endpoint.start_again().await;
    harness.answer(id).await.result();
    works(&mut harness).await;
}
