//! Session ids: sent back, given up, and opened anew when the endpoint forgot them.

use serde_json::json;

use crate::{
    opened::{BOTH, FORMS, assert_own, assert_reason, leave, opened, text},
    support::{Endpoint, Era, Harness, Recorded, Reply, four_eras},
};

async fn echo(harness: &mut Harness) -> String {
    text(&harness.call("echo", r#"{"text":"hi"}"#).await)
}

fn session_of(request: &Recorded) -> Option<&str> {
    request.header("mcp-session-id")
}

four_eras!(
    a_session_id_goes_with_every_later_request_and_is_given_up_at_the_end,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).sessions()).await;
        assert_eq!(echo(&mut harness).await, "hi");
        leave(&mut harness).await;
        let opening = ["server/discover", "initialize"];
        for request in endpoint.requests().iter().filter(|request| !opening.contains(&request.method())) {
            assert_eq!(session_of(request), Some("session-0"), "{} {}", request.verb, request.method());
        }
        assert_eq!(endpoint.requests_of("DELETE").len(), 1);
        assert_eq!(endpoint.requests().last().unwrap().verb, "DELETE");
    }
);

four_eras!(where_no_session_was_issued_none_is_given_up, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    assert_eq!(echo(&mut harness).await, "hi");
    leave(&mut harness).await;
    assert!(endpoint.requests().iter().all(|request| session_of(request).is_none()));
    assert!(endpoint.requests_of("DELETE").is_empty());
});

four_eras!(an_endpoint_that_takes_no_delete_does_not_spoil_the_end, |harness_era, endpoint_era| async {
    let stubborn = Endpoint::era(endpoint_era).sessions().on("DELETE", |_| Reply::status(405));
    let (mut harness, endpoint) = opened(harness_era, stubborn).await;
    leave(&mut harness).await;
    assert_eq!(endpoint.requests_of("DELETE").len(), 1);
});

#[tokio::test]
async fn a_forgotten_session_is_opened_again_and_the_request_sent_again_once() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::legacy().sessions()).await;
        assert_eq!(echo(&mut harness).await, "hi");
        endpoint.forget_session();
        assert_eq!(echo(&mut harness).await, "hi");
        let calls = endpoint.requests_of("tools/call");
        let sessions: Vec<_> = calls.iter().map(session_of).collect();
        assert_eq!(sessions, [Some("session-0"), Some("session-0"), Some("session-1")]);
        assert_eq!(endpoint.requests_of("initialize").len(), 2);
        assert_eq!(endpoint.requests_of("notifications/initialized").len(), 2);
        assert_eq!(
            endpoint.requests_of("tools/list").len(),
            2,
            "the surface is read again before anything is served"
        );
        assert_eq!(echo(&mut harness).await, "hi");
    }
}

#[tokio::test]
async fn several_requests_that_meet_a_forgotten_session_open_one_new_one() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::legacy().sessions()).await;
        endpoint.forget_session();
        let ids = [
            harness.start_call("echo", r#"{"text":"a"}"#).await,
            harness.start_call("echo", r#"{"text":"b"}"#).await,
            harness.request("resources/read", r#"{"uri":"memo://one"}"#).await,
        ];
        assert_eq!(text(&harness.answer(ids[0]).await), "a");
        assert_eq!(text(&harness.answer(ids[1]).await), "b");
        assert!(!harness.answer(ids[2]).await.is_error());
        assert_eq!(endpoint.requests_of("initialize").len(), 2);
    }
}

#[tokio::test]
async fn a_request_that_meets_a_lost_session_twice_is_given_back_as_an_error() {
    for harness_era in BOTH {
        let lost = |_: &Recorded| Reply::error_code(-32001, "Session not found").with_status(404);
        let endpoint = Endpoint::legacy().sessions().on("tools/call", lost);
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        let answer = harness.call("echo", "{}").await;
        assert_own(&answer);
        assert_eq!(answer.error()["data"]["httpStatus"], json!(404));
        assert_eq!(endpoint.requests_of("tools/call").len(), 2);
        assert!(!harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await.is_error());
        // the fake does not know that its handler lost the sessions, and misses their ids
        endpoint.take_violations();
    }
}

#[tokio::test]
async fn a_legacy_endpoint_without_sessions_that_answers_404_is_not_initialized_again() {
    for harness_era in BOTH {
        let endpoint = Endpoint::legacy().on("tools/call", |_| Reply::status(404));
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        let answer = harness.call("echo", "{}").await;
        assert_reason(&answer, "http_status");
        assert_eq!(answer.error()["data"]["httpStatus"], json!(404));
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
        assert_eq!(endpoint.requests_of("initialize").len(), 1);
    }
}

#[tokio::test]
async fn calls_in_flight_of_a_lost_session_fail_and_are_not_repeated() {
    for harness_era in BOTH {
        let (mut harness, mut endpoint) = opened(harness_era, Endpoint::legacy().sessions()).await;
        let waiting = harness.start_call("sleep", "{}").await;
        endpoint.arrived("tools/call", 0).await;
        endpoint.stop().await;
        endpoint.start_again().await;
        let answer = harness.answer(waiting).await;
        assert_reason(&answer, "connection_lost");
        assert_eq!(echo(&mut harness).await, "hi");
        let slept = endpoint.requests_of("tools/call");
        assert_eq!(slept.iter().filter(|call| call.subject() == "sleep").count(), 1);
        assert_eq!(session_of(slept.last().unwrap()), Some("session-1"));
    }
}

#[tokio::test]
async fn a_session_that_a_modern_endpoint_forgot_is_dropped() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::modern().sessions()).await;
        endpoint.forget_session();
        // whether this one is sent again is left open; that the endpoint stays usable is not
        harness.call("echo", "{}").await;
        assert_eq!(echo(&mut harness).await, "hi");
        assert_ne!(session_of(endpoint.requests_of("tools/call").last().unwrap()), Some("session-0"));
    }
}

#[tokio::test]
async fn a_legacy_session_is_declared_anew_with_what_the_harness_can_do() {
    let endpoint = Endpoint::legacy().sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(Era::Legacy, FORMS).await;
    endpoint.forget_session();
    assert_eq!(echo(&mut harness).await, "hi");
    let declared = endpoint.arrived("initialize", 1).await;
    assert_eq!(*declared.param("capabilities"), json!({"elicitation":{"form":{}}}));
}

#[tokio::test]
async fn a_session_that_is_replaced_is_given_up_too() {
    let endpoint = Endpoint::legacy().sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.discover("{}").await;
    // more than the probe said: a legacy endpoint can only be told in a new session
    harness.initialize("2025-11-25", FORMS).await;
    assert_eq!(echo(&mut harness).await, "hi");
    leave(&mut harness).await;
    assert_eq!(endpoint.requests_of("initialize").len(), 2);
    let given_up = endpoint.requests_of("DELETE");
    let mut given_up: Vec<_> = given_up.iter().map(session_of).collect();
    given_up.sort_unstable();
    assert_eq!(given_up, [Some("session-0"), Some("session-1")]);
    // the fake has one session at a time, and misses the first one's id where it is in use no more
    endpoint.take_violations();
}
