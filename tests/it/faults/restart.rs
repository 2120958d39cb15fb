//! An endpoint that goes away and comes back: errors meanwhile, and then it works as before.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use crate::support::{Endpoint, Era, Harness, Reply, four_eras};

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
        let endpoint = Endpoint::legacy().sessions().start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        endpoint.set("tools/call", |_| Reply::full(404, "text/plain", "no session"));
        let answer = harness.call("echo", r#"{"text":"x"}"#).await;
        assert_eq!(answer.error()["data"]["reason"], "session_lost", "{}", answer.text());
        let (calls, openings) = (endpoint.requests_of("tools/call"), endpoint.requests_of("initialize"));
        assert!(calls.len() <= 2, "{} calls", calls.len());
        assert!(openings.len() <= 3, "{} openings", openings.len());
        endpoint.set("tools/call", |_| Reply::text("back"));
        works(&mut harness).await;
        // this endpoint says 404 and forgets nothing, so that it misses its session id at each new opening
        let violations = endpoint.take_violations();
        assert!(violations.iter().all(|text| text.contains("server/discover")), "{violations:?}");
    }
}

/// A call of a session that is lost may still be in flight when the next session begins.
async fn a_lost_session_with_a_call_in_flight(harness_era: Era) -> (Endpoint, Harness, u64) {
    let endpoint = Endpoint::legacy().sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let sleeper = harness.start_call("sleep", "{}").await;
    endpoint.arrived("tools/call", 0).await;
    endpoint.forget_session();
    works(&mut harness).await;
    (endpoint, harness, sleeper)
}

#[tokio::test]
async fn an_id_in_flight_is_not_used_again_in_the_next_session() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let (endpoint, mut harness, sleeper) = a_lost_session_with_a_call_in_flight(harness_era).await;
        // as many as were asked before, and more
        for _ in 0..20 {
            works(&mut harness).await;
        }
        endpoint.wake();
        harness.answer(sleeper).await;
    }
}

#[tokio::test]
async fn a_cancelled_call_of_a_lost_session_cancels_nothing_in_the_next_one() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let (endpoint, mut harness, sleeper) = a_lost_session_with_a_call_in_flight(harness_era).await;
        let mut others = Vec::new();
        for _ in 0..20 {
            others.push(harness.start_call("ask", "{}").await);
            others.push(harness.start_call("sleep", "{}").await);
        }
        endpoint.wait_for(|all| all.iter().filter(|one| one.subject() == "sleep").count() == 21).await;
        harness.cancel(sleeper).await;
        works(&mut harness).await;
        let first = endpoint.requests().into_iter().find(|one| one.subject() == "sleep").unwrap();
        let session = first.header("mcp-session-id").map(str::to_owned);
        for cancel in endpoint.requests_of("notifications/cancelled") {
            let of_the_lost_session = cancel.header("mcp-session-id") == session.as_deref();
            let same_id = endpoint.requests().into_iter().any(|one| {
                one.is_request()
                    && one.json["id"] == cancel.json["params"]["requestId"]
                    && one.header("mcp-session-id") == cancel.header("mcp-session-id")
            });
            assert!(of_the_lost_session || !same_id, "another call was cancelled");
        }
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
