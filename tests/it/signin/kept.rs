//! Staying signed in: renewals, by whom and how often.

use std::time::Duration;

use super::{Place, calls, leaves, works};
use crate::support::{EndpointBuilder, Era};

#[tokio::test]
async fn an_expired_token_is_renewed_before_the_first_request() {
    let place = Place::new().await;
    let sign_in = place.expired();
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    leaves(harness).await;
    assert_eq!((place.authority.refreshes(), place.authority.spent_reuses()), (1, 0));
    assert!(place.authority.requests_of("/token").iter().all(|request| !request.form.contains_key("scope")));
    let record = place.record();
    assert_ne!(record["tokens"]["refresh"], sign_in.refresh);
    assert_ne!(record["tokens"]["access"], sign_in.access);
    place.finish();
}

#[tokio::test]
async fn six_proxies_spend_one_refresh_token_once() {
    let place = Place::with(
        |authority| authority.slow_token(Duration::from_millis(800)),
        EndpointBuilder::many_clients,
    )
    .await;
    let _ = place.expired();
    let mut harnesses: Vec<_> = (0..6).map(|_| place.launch().start()).collect();
    for harness in &mut harnesses {
        works(harness, Era::Modern).await;
    }
    for harness in harnesses {
        leaves(harness).await;
    }
    assert_eq!((place.authority.refreshes(), place.authority.spent_reuses()), (1, 0));
    place.finish();
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once_for_all_calls() {
    let place = Place::new().await;
    let sign_in = crate::support::SignIn::issued(&place.authority, &place.url(), "").times(100, 3500);
    place.folder.write(&[&sign_in]);
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    place.authority.expire_everything();
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(harness.start_call("echo", r#"{"text":"a"}"#).await);
    }
    for id in held {
        let answer = harness.answer(id).await;
        assert!(!answer.is_error(), "{}", answer.text());
    }
    assert_eq!((place.authority.refreshes(), place.authority.spent_reuses()), (1, 0));
    calls(&mut harness).await;
    leaves(harness).await;
    place.finish();
}

/// An endpoint that lost its tokens in a restart: what it accepted a moment ago it does not know any more.
#[tokio::test]
async fn a_fresh_token_that_was_accepted_before_is_renewed_when_it_is_refused() {
    let place = Place::new().await;
    let _ = place.stored();
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    for renewals in 1..=3 {
        place.authority.expire_everything();
        calls(&mut harness).await;
        assert_eq!(place.authority.refreshes(), renewals);
    }
    leaves(harness).await;
    place.finish();
}
