//! The program leaves when the harness leaves or a signal says so, whatever it is doing, and leaves nothing behind.

use std::time::Duration;

use super::{Phase, in_phase, subscribe};
use crate::support::{Endpoint, Era, Fate, Harness, Launch, four_eras};

/// How long leaving may take.
const SOON: Duration = Duration::from_secs(2);

/// What makes a program leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    StdinClosed,
    StdoutClosed,
    Signal(&'static str),
}

async fn leaves(end: End, launch: fn(Launch) -> Launch, phase: Phase, harness_era: Era, endpoint_era: Era) {
    let (endpoint, mut harness) = in_phase(phase, harness_era, endpoint_era, launch).await;
    match end {
        End::StdinClosed => harness.close_stdin(),
        End::StdoutClosed => harness.close_stdout().await,
        End::Signal(name) => harness.signal(name).await,
    }
    let (code, took) = harness.wait_exit().await;
    let stderr = harness.stderr_text();
    assert_eq!(code, if matches!(end, End::Signal(_)) { 130 } else { 0 }, "{stderr}");
    assert!(took < SOON, "took {took:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    if matches!(phase, Phase::Idle | Phase::Calling | Phase::Listening) {
        endpoint.arrived("DELETE", 0).await;
        assert_eq!(endpoint.session(), None, "the session is given up");
    }
    if phase == Phase::Calling {
        is_cancelled(&endpoint, endpoint_era).await;
    }
}

/// A modern endpoint sees the stream close, a legacy one is told.
async fn is_cancelled(endpoint: &Endpoint, endpoint_era: Era) {
    let call = endpoint.arrived("tools/call", 0).await;
    if endpoint_era == Era::Modern {
        endpoint.client_closed(call.order).await;
        assert_eq!(endpoint.requests_of("notifications/cancelled").len(), 0);
    } else {
        let cancelled = endpoint.arrived("notifications/cancelled", 0).await;
        assert_eq!(cancelled.param("requestId"), &call.json["id"]);
    }
}

/// Twenty tests: every phase, in every pair of eras.
macro_rules! leaves_in_each_phase {
    ($name:ident, $end:expr, $launch:expr) => {
        mod $name {
            use super::*;

            four_eras!(while_nothing_was_said_yet, |harness_era, endpoint_era| async {
                leaves($end, $launch, Phase::Started, harness_era, endpoint_era).await;
            });
            four_eras!(while_it_opens, |harness_era, endpoint_era| async {
                leaves($end, $launch, Phase::Opening, harness_era, endpoint_era).await;
            });
            four_eras!(while_idle, |harness_era, endpoint_era| async {
                leaves($end, $launch, Phase::Idle, harness_era, endpoint_era).await;
            });
            four_eras!(while_a_call_is_in_flight, |harness_era, endpoint_era| async {
                leaves($end, $launch, Phase::Calling, harness_era, endpoint_era).await;
            });
            four_eras!(while_a_subscription_is_open, |harness_era, endpoint_era| async {
                leaves($end, $launch, Phase::Listening, harness_era, endpoint_era).await;
            });
        }
    };
}

leaves_in_each_phase!(it_leaves_with_0_when_stdin_ends, End::StdinClosed, |launch| launch);
leaves_in_each_phase!(it_leaves_with_0_when_stdout_closes, End::StdoutClosed, |launch| launch);
// Node gives its children sockets.
#[cfg(unix)]
leaves_in_each_phase!(it_leaves_with_0_when_a_socket_for_stdin_ends, End::StdinClosed, Launch::sockets);
#[cfg(target_os = "linux")]
leaves_in_each_phase!(it_leaves_with_0_when_a_socket_for_stdout_closes, End::StdoutClosed, Launch::sockets);
#[cfg(unix)]
leaves_in_each_phase!(it_leaves_with_130_on_sigterm, End::Signal("TERM"), |launch| launch);
#[cfg(unix)]
leaves_in_each_phase!(it_leaves_with_130_on_sigint, End::Signal("INT"), |launch| launch);

four_eras!(a_call_in_flight_when_stdin_ends_may_still_finish, |harness_era, endpoint_era| async {
    let (endpoint, mut harness) = in_phase(Phase::Idle, harness_era, endpoint_era, |launch| launch).await;
    let id = harness.start_call("sleep", "{}").await;
    endpoint.arrived("tools/call", 1).await;
    harness.close_stdin();
    endpoint.wake();
    assert_eq!(harness.answer(id).await.result()["content"][0]["text"], "awake");
    let (code, took) = harness.wait_exit().await;
    assert_eq!(code, 0);
    assert!(took < SOON);
    assert_eq!(endpoint.fate_of(endpoint.arrived("tools/call", 1).await.order).await, Fate::Answered);
});

four_eras!(many_calls_in_flight_do_not_delay_leaving, |harness_era, endpoint_era| async {
    let (endpoint, mut harness) = in_phase(Phase::Idle, harness_era, endpoint_era, |launch| launch).await;
    subscribe(&mut harness, harness_era).await;
    for _ in 0..20 {
        harness.start_call("sleep", "{}").await;
    }
    endpoint.arrived("tools/call", 20).await;
    harness.close_stdin();
    let (code, took) = harness.wait_exit().await;
    assert_eq!(code, 0);
    assert!(took < SOON, "{took:?}");
    assert_eq!(endpoint.session(), None);
});

/// An endpoint that answers neither the cancellation nor the DELETE cannot hold the program back.
#[tokio::test]
async fn an_endpoint_that_hangs_does_not_delay_leaving() {
    use crate::support::Reply;
    for harness_era in [Era::Modern, Era::Legacy] {
        let endpoint = Endpoint::legacy()
            .sessions()
            .on("DELETE", |_| Reply::hang())
            .on("notifications/cancelled", |_| Reply::hang())
            .start()
            .await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        harness.start_call("sleep", "{}").await;
        endpoint.arrived("tools/call", 0).await;
        harness.close_stdin();
        let (code, took) = harness.wait_exit().await;
        assert_eq!(code, 0);
        assert!(took < SOON, "{took:?}");
    }
}

/// A cancellation that gets no answer must not eat the time in which the session is given up.
#[tokio::test]
async fn a_session_is_given_up_although_a_cancellation_hangs() {
    use crate::support::Reply;
    for harness_era in [Era::Modern, Era::Legacy] {
        let endpoint =
            Endpoint::legacy().sessions().on("notifications/cancelled", |_| Reply::hang()).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        harness.start_call("sleep", "{}").await;
        endpoint.arrived("tools/call", 0).await;
        harness.close_stdin();
        assert_eq!(harness.wait_exit().await.0, 0);
        assert_eq!(endpoint.requests_of("DELETE").len(), 1, "the session is not given up");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_gone_does_not_delay_leaving() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let (mut endpoint, mut harness) = in_phase(Phase::Idle, harness_era, Era::Legacy, |it| it).await;
        endpoint.stop().await;
        harness.close_stdin();
        let (code, took) = harness.wait_exit().await;
        assert_eq!(code, 0);
        assert!(took < SOON, "{took:?}");
    }
}

/// A second signal, or the end of stdin after a signal, changes nothing.
#[cfg(unix)]
#[tokio::test]
async fn a_signal_while_leaving_is_no_surprise() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let (_endpoint, mut harness) = in_phase(Phase::Calling, harness_era, Era::Modern, |it| it).await;
        harness.signal("TERM").await;
        harness.close_stdin();
        let (code, took) = harness.wait_exit().await;
        // both are reasons to leave, and nothing is promised of which one counts
        assert!([0, 130].contains(&code), "{code}");
        assert!(took < SOON, "{took:?}");
    }
}

/// A harness that writes half a line and dies.
#[tokio::test]
async fn half_a_line_before_the_end_of_stdin_is_no_hindrance() {
    let (endpoint, mut harness) = in_phase(Phase::Idle, Era::Legacy, Era::Modern, |it| it).await;
    harness.send_bytes(br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"ec"#).await;
    harness.close_stdin();
    let (code, took) = harness.wait_exit().await;
    assert_eq!(code, 0);
    assert!(took < SOON, "{took:?}");
    assert_eq!(endpoint.requests_of("tools/call").len(), 1);
}

#[cfg(target_os = "linux")]
four_eras!(no_child_process_is_started, |harness_era, endpoint_era| async {
    let (_endpoint, harness) = in_phase(Phase::Calling, harness_era, endpoint_era, |it| it).await;
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        // a process may end while we look
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let after_name = stat.rsplit_once(") ").unwrap().1;
        if after_name.split(' ').nth(1) == Some(harness.pid().to_string().as_str()) {
            children.push(stat);
        }
    }
    assert!(children.is_empty(), "{children:?}");
});
