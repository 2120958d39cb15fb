//! Renewals that go wrong for a moment or for good (F02 to F06, F11 of the field's complaints).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Place, calls, leaves, works};
use crate::support::{Era, Harness, SignIn, now_in_ms};

fn html(status: u16, more: &[(&str, &str)]) -> (u16, Vec<(String, String)>, String) {
    let mut headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    headers.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    (status, headers, "<!doctype html><title>one moment</title>".to_owned())
}

/// Calls until a call succeeds; what was said in the meantime.
async fn calls_until_it_works(harness: &mut Harness) -> Vec<serde_json::Value> {
    let mut refusals = Vec::new();
    loop {
        let answer = harness.call("echo", r#"{"text":"a"}"#).await;
        if !answer.is_error() {
            return refusals;
        }
        refusals.push(answer.json()["error"].clone());
    }
}

#[tokio::test]
async fn a_passing_failure_is_no_reason_to_sign_in_again() {
    let place = Place::new().await;
    let before = SignIn::issued(&place.authority, &place.url(), "").times(3000, 600);
    place.folder.write(&[&before]);
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    let stored = place.record();
    place.authority.set_token_handler(|_, nth| match nth {
        0 => Some(html(503, &[])),
        1 => Some(html(429, &[("retry-after", "2")])),
        2 => Some((0, vec![], String::new())),
        _ => None,
    });
    place.authority.expire_everything();
    let refusals = calls_until_it_works(&mut harness).await;
    assert!(!refusals.is_empty());
    for refusal in &refusals {
        assert_eq!(refusal["data"]["reason"], "sign_in_unavailable", "{refusal}");
        let message = refusal["message"].as_str().unwrap();
        assert!(!message.contains("--login"), "it is temporary, and nobody has to do anything: {message}");
    }
    assert!(refusals.iter().any(|refusal| refusal["data"]["retryAfterSeconds"] == 2), "{refusals:#?}");
    let requests = place.authority.requests_of("/token");
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!(request.form["refresh_token"], before.refresh);
    }
    assert_eq!(stored["tokens"]["refresh"], before.refresh);
    assert_ne!(place.record()["tokens"]["refresh"], before.refresh);
    assert!(harness.sign_in_links().is_empty());
    leaves(harness).await;
    place.finish();
}

/// What fails leaves the file as it was.
#[tokio::test]
async fn a_failed_renewal_leaves_what_is_stored() {
    let place = Place::new().await;
    let before = place.expired();
    let stored = place.record();
    for (status, text) in [
        (500, ""),
        (502, "<html>"),
        (429, "{}"),
        (200, "{}"),
        (200, "not json"),
        (400, "{\"error\":\"invalid_target\"}"),
        (400, "<html>"),
        (401, ""),
        (403, "{\"error\":5}"),
        (404, "{}"),
    ] {
        place.authority.set_token_handler(move |_, _| {
            Some((status, vec![("content-type".into(), "application/json".into())], text.into()))
        });
        let mut harness = place.launch().start();
        let answer = harness.open(Era::Modern, "{}").await;
        assert!(answer.is_error(), "{status} {text}: {}", answer.text());
        assert!(harness.sign_in_links().is_empty(), "{status} {text}");
        harness.close_stdin();
        harness.wait_exit().await;
        assert_eq!(place.record(), stored, "{status} {text}");
    }
    place.authority.set_token_handler(|_, _| None);
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    leaves(harness).await;
    assert!(place.authority.requests_of("/token").iter().all(|r| r.form["refresh_token"] == before.refresh));
    place.finish();
}

#[tokio::test]
async fn a_server_that_does_not_rotate_keeps_the_one_refresh_token() {
    let place =
        Place::with(|authority| authority.keep_refresh_token().token_life(2), |endpoint| endpoint).await;
    let before = place.expired();
    let mut harness = place.launch().start();
    works(&mut harness, Era::Legacy).await;
    while place.authority.refreshes() < 3 {
        calls(&mut harness).await;
    }
    leaves(harness).await;
    for request in place.authority.requests_of("/token") {
        assert_eq!(request.form["refresh_token"], before.refresh);
    }
    assert_eq!(place.record()["tokens"]["refresh"], before.refresh);
    place.finish();
}

/// The server compares `resource` as text, at the first exchange and in each renewal; no discovery happens after a restart.
#[tokio::test]
async fn the_resource_is_sent_byte_for_byte_and_no_scope() {
    let place = Place::with(
        |authority| authority.scopes_supported(&["mcp:read"]),
        |endpoint| {
            endpoint.challenge_scope("mcp:read").prm_document(|document| {
                let whole = document["resource"].as_str().unwrap().to_owned();
                document["resource"] = whole.strip_suffix("/mcp").unwrap().into();
            })
        },
    )
    .await;
    let mut login = place.launch().arg("--login").spawn();
    let link = login.sign_in_link().await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    assert_eq!(login.finish().await.code, 0);
    place.authority.expire_everything();
    place.folder.change_record(&place.url(), |record| {
        record["tokens"]["obtained_at"] = (now_in_ms() - 7_200_000).into();
        record["tokens"]["expires_at"] = (now_in_ms() - 3_600_000).into();
    });
    let documents = place.endpoint.requests().iter().filter(|r| r.verb == "GET").count();
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    leaves(harness).await;
    let resource = place.url().strip_suffix("/mcp").unwrap().to_owned();
    let requests = place.authority.requests_of("/token");
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.form["resource"], resource);
        assert!(!request.form.contains_key("scope"));
    }
    assert_eq!(place.authority.requests_of("/authorize")[0].query["resource"], resource);
    assert_eq!(place.endpoint.requests().iter().filter(|r| r.verb == "GET").count(), documents);
    place.finish();
}

/// Tokens that live for seconds; calls and a stream that live longer.
#[tokio::test]
async fn calls_and_streams_outlive_their_tokens() {
    for era in [Era::Modern, Era::Legacy] {
        let place =
            Place::of(era, |authority| authority.token_life(2), |endpoint| endpoint.streams_end_with_token())
                .await;
        let _ = place.expired();
        let mut harness = place.launch().start();
        works(&mut harness, era).await;
        if era == Era::Modern {
            let filter = r#"{"notifications":{"toolsListChanged":true}}"#;
            harness.request("subscriptions/listen", filter).await;
            harness.next_notification("notifications/subscriptions/acknowledged").await;
        }
        let asleep = harness.start_call("sleep", "{}").await;
        while place.authority.refreshes() < 4 {
            calls(&mut harness).await;
        }
        match era {
            Era::Modern => place.endpoint.listens(1).await,
            Era::Legacy => place.endpoint.get_streams(1).await,
        }
        place.endpoint.wake();
        let answer = harness.answer(asleep).await;
        assert!(!answer.is_error(), "{}", answer.text());
        assert!(harness.sign_in_links().is_empty());
        leaves(harness).await;
        assert_eq!(place.authority.spent_reuses(), 0);
        place.finish();
    }
}

#[tokio::test]
async fn a_sign_in_that_was_revoked_is_made_again_elsewhere() {
    let place = Place::new().await;
    let before = SignIn::issued(&place.authority, &place.url(), "").times(3000, 600);
    place.folder.write(&[&before]);
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    place.authority.revoke_everything();
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(harness.start_call("echo", r#"{"text":"a"}"#).await);
    }
    for id in held {
        let answer = harness.answer(id).await;
        assert_eq!(answer.json()["error"]["data"]["reason"], "sign_in_required", "{}", answer.text());
        assert!(answer.text().contains("--login"), "{}", answer.text());
    }
    assert!(harness.sign_in_links().is_empty(), "nobody asked for a browser in the middle of a session");
    assert_eq!(place.authority.refreshes(), 1);
    assert!(place.record()["tokens"].is_null());

    let mut login = place.launch().arg("--login").spawn();
    let link = login.sign_in_link().await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    assert_eq!(login.finish().await.code, 0);
    calls(&mut harness).await;
    leaves(harness).await;
    place.finish();
}

/// An endpoint that takes no token at all: one question, and no storm.
#[tokio::test]
async fn a_fresh_token_that_is_refused_ends_the_start_after_one_question() {
    let place = Place::with(
        |authority| authority,
        |endpoint| {
            endpoint.challenge(|told| vec![told]).on("server/discover", refuse).on("initialize", refuse)
        },
    )
    .await;
    let mut harness = place.launch().start();
    let link = harness.sign_in_link().await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    assert_eq!(harness.wait_exit().await.0, 77);
    assert_eq!(harness.sign_in_links().len(), 1);
    harness.wait_stderr("the endpoint refuses, and says \"the token is not for you\"").await;
    harness.wait_stderr("does not accept a token that is fresh").await;
    place.finish();
}

fn refuse(_: &crate::support::Recorded) -> crate::support::Reply {
    crate::support::Reply::status(401).with_header(
        "www-authenticate",
        "Bearer error=\"invalid_token\", error_description=\"the token is not for you\"",
    )
}

/// The same in the middle of a session: each call is answered, and the browser stays closed.
#[tokio::test]
async fn an_endpoint_that_turns_against_every_token_is_not_asked_in_a_loop() {
    let place = Place::new().await;
    let before = SignIn::issued(&place.authority, &place.url(), "").times(3000, 600);
    place.folder.write(&[&before]);
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    place.endpoint.set("tools/call", move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        refuse(request)
    });
    for _ in 0..5 {
        let answer = harness.call("echo", r#"{"text":"a"}"#).await;
        assert_eq!(answer.json()["error"]["data"]["reason"], "sign_in_required", "{}", answer.text());
    }
    // Each call once, and the first a second time with a new token.
    assert_eq!(refused.load(Ordering::Relaxed), 6);
    assert_eq!(place.authority.refreshes(), 1);
    assert!(harness.sign_in_links().is_empty());
    leaves(harness).await;
    place.finish();
}
