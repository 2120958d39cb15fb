//! Every way back into serving is checked, not the first alone.

use super::{CHANGED, QUIET, names_the_description, quiet, sealed, streaming, works};
use crate::{
    opened::{FORMS, assert_reason, opened},
    support::{Endpoint, Era, Harness, LEGACY, Reply, four_eras},
};

/// The other era.
fn other(era: Era) -> Era {
    if era == Era::Modern { Era::Legacy } else { Era::Modern }
}

async fn is_sealed(mut harness: Harness, endpoint: &Endpoint, era: Era) {
    let stderr = sealed(&mut harness, endpoint, era).await;
    names_the_description(&stderr);
}

four_eras!(a_session_that_was_lost, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, quiet(endpoint_era).sessions()).await;
    works(&mut harness).await;
    let calls = endpoint.requests_of("tools/call").len();
    endpoint.set_tools(CHANGED);
    endpoint.forget_session();
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    let sent = endpoint.requests_of("tools/call").len();
    assert_eq!(sent, calls + 1, "it was sent again, to another surface");
    is_sealed(harness, &endpoint, harness_era).await;
});

four_eras!(an_endpoint_that_restarted, |harness_era, endpoint_era| async {
    let (mut harness, mut endpoint) = opened(harness_era, quiet(endpoint_era).sessions()).await;
    works(&mut harness).await;
    endpoint.stop().await;
    endpoint.set_tools(CHANGED);
    endpoint.start_again().await;
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    is_sealed(harness, &endpoint, harness_era).await;
});

// Without sessions only the streams show that it is another process.
four_eras!(an_endpoint_without_sessions_that_restarted, |harness_era, endpoint_era| async {
    let (mut harness, mut endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    works(&mut harness).await;
    streaming(&endpoint, harness_era, endpoint_era).await;
    endpoint.stop().await;
    endpoint.set_tools(CHANGED);
    endpoint.start_again().await;
    is_sealed(harness, &endpoint, harness_era).await;
});

/// How servers of an era refuse a request of the other era.
fn refusals(era: Era) -> &'static [fn() -> Reply] {
    match era {
        // the SDKs of that era, for TypeScript and Python; a server that is no more than its routes
        Era::Legacy => &[
            || Reply::error_code(-32000, "Bad Request: Server not initialized").with_status(400),
            || Reply::error_code(-32600, "Bad Request: Missing session ID").with_status(400),
            || Reply::status(400),
            || Reply::status(405),
        ],
        // a header or a member of _meta is missing, the version is not supported
        Era::Modern => &[
            || Reply::error_code(-32020, "header mismatch").with_status(400),
            || Reply::error_code(-32022, "unsupported version").with_status(400),
            || Reply::error_code(-32602, "no _meta").with_status(400),
        ],
    }
}

four_eras!(an_endpoint_that_changed_its_era, |harness_era, endpoint_era| async {
    for refusal in refusals(other(endpoint_era)) {
        let (mut harness, mut endpoint) = opened(harness_era, quiet(endpoint_era)).await;
        works(&mut harness).await;
        endpoint.stop().await;
        endpoint.change(|surface| {
            surface.era = other(endpoint_era);
            surface.tool_pages = vec![CHANGED.to_owned()];
        });
        endpoint.set("rules", move |_| refusal());
        endpoint.start_again().await;
        let answer = harness.call("echo", r#"{"text":"x"}"#).await;
        assert!(answer.is_error(), "{}", answer.text());
        is_sealed(harness, &endpoint, harness_era).await;
        // the request that was of the wrong era
        endpoint.take_violations();
    }
});

four_eras!(an_endpoint_that_changed_its_era_and_came_back, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, quiet(endpoint_era)).await;
    let first = harness.ask("tools/list", "{}").await.result();
    for (era, changed) in [(other(endpoint_era), false), (endpoint_era, true)] {
        endpoint.change(|surface| {
            surface.era = era;
            if changed {
                surface.tool_pages = vec![CHANGED.to_owned()];
            }
        });
        endpoint.set("rules", move |_| refusals(era)[0]());
        assert!(harness.call("echo", r#"{"text":"x"}"#).await.is_error());
        if !changed {
            works(&mut harness).await;
            assert_eq!(harness.ask("tools/list", "{}").await.result()["tools"], first["tools"]);
        }
    }
    is_sealed(harness, &endpoint, harness_era).await;
    endpoint.take_violations();
});

/// A legacy endpoint hears of new capabilities in a new session, and could show it another surface.
#[tokio::test]
async fn a_harness_that_initializes_again_with_more_capabilities() {
    for harness_era in crate::opened::BOTH {
        let (mut harness, endpoint) = opened(harness_era, quiet(Era::Legacy)).await;
        works(&mut harness).await;
        endpoint.set_tools(CHANGED);
        let _ = harness.initialize(LEGACY, FORMS).await;
        let answer = harness.call("echo", r#"{"text":"x"}"#).await;
        assert_reason(&answer, "surface_changed");
        is_sealed(harness, &endpoint, Era::Legacy).await;
    }
}

four_eras!(a_harness_that_opens_again_gets_what_was_verified, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, quiet(endpoint_era)).await;
    let first = harness.ask("tools/list", "{}").await.result();
    endpoint.set_tools(CHANGED);
    endpoint.change(|surface| surface.instructions = Some(r#""Be loud.""#.into()));
    let again = harness.open(harness_era, "{}").await.result();
    assert_eq!(again["instructions"], "Be brief.");
    assert_eq!(harness.ask("tools/list", "{}").await.result()["tools"], first["tools"]);
});

/// What changed while a stream for announcements was lost is found when it is there again.
async fn found_after_losing_the_stream(endpoint_era: Era, lose: impl AsyncFn(&Endpoint)) {
    for harness_era in crate::opened::BOTH {
        let (harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
        streaming(&endpoint, harness_era, endpoint_era).await;
        endpoint.set_tools(CHANGED);
        lose(&endpoint).await;
        is_sealed(harness, &endpoint, harness_era).await;
    }
}

#[tokio::test]
async fn a_listen_stream_that_was_cut_and_regained() {
    found_after_losing_the_stream(Era::Modern, async |endpoint| endpoint.cut_listens().await).await;
}

#[tokio::test]
async fn a_listen_stream_that_ended_and_was_regained() {
    found_after_losing_the_stream(Era::Modern, async |endpoint| endpoint.end_listens().await).await;
}

#[tokio::test]
async fn an_event_stream_that_was_cut_and_regained() {
    found_after_losing_the_stream(Era::Legacy, async |endpoint| endpoint.cut_get_streams().await).await;
}

/// From now on nothing would be announced, so what there is now is looked at.
#[tokio::test]
async fn a_listen_stream_that_was_cut_and_is_not_offered_any_more() {
    for harness_era in crate::opened::BOTH {
        for refusal in [404, 400] {
            let (mut harness, endpoint) = opened(harness_era, Endpoint::modern()).await;
            streaming(&endpoint, harness_era, Era::Modern).await;
            endpoint.arrived("tools/list", 1).await;
            works(&mut harness).await;
            endpoint.set("subscriptions/listen", move |_| {
                Reply::error_code(-32601, "Method not found").with_status(refusal)
            });
            endpoint.set_tools(CHANGED);
            endpoint.cut_listens().await;
            is_sealed(harness, &endpoint, harness_era).await;
        }
    }
}

four_eras!(a_reopening_with_another_declared_hash, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).capabilities(QUIET).sessions().meta(r#""surfaceHash":"a""#);
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    works(&mut harness).await;
    endpoint.set_meta(r#""surfaceHash":"b""#);
    endpoint.forget_session();
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    sealed(&mut harness, &endpoint, harness_era).await;
});
