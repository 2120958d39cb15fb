//! Which scopes are asked for, and what happens when more are needed (F21 and F22 of the field's complaints).

use super::{Place, calls, leaves, works};
use crate::support::{AuthorityBuilder, EndpointBuilder, Era};

fn asked(place: &Place) -> Vec<Option<String>> {
    place
        .authority
        .requests_of("/authorize")
        .iter()
        .map(|request| request.query.get("scope").cloned())
        .collect()
}

#[tokio::test]
async fn the_challenge_says_what_to_ask_for_then_the_document_then_nobody() {
    let supported =
        |document: &mut serde_json::Value| document["scopes_supported"] = serde_json::json!(["x", "y"]);
    let challenge =
        |endpoint: EndpointBuilder| endpoint.challenge_scope("mcp:read mcp:write").prm_document(supported);
    let place = Place::with(|a| a, challenge).await;
    place.login(&[]).await;
    assert_eq!(asked(&place), [Some("mcp:read mcp:write".to_owned())]);
    place.finish();

    let place = Place::with(|a| a, |endpoint| endpoint.prm_document(supported)).await;
    place.login(&[]).await;
    assert_eq!(asked(&place), [Some("x y".to_owned())]);
    place.finish();

    let place = Place::new().await;
    place.login(&[]).await;
    assert_eq!(asked(&place), [None]);
    place.finish();

    let place = Place::with(|a| a, challenge).await;
    place.login(&["--scope", "only this"]).await;
    assert_eq!(asked(&place), [Some("only this".to_owned())]);
    place.finish();
}

#[tokio::test]
async fn refresh_tokens_are_asked_for_where_the_server_offers_them() {
    let place = Place::with(
        |authority| authority.scopes_supported(&["openid", "offline_access"]),
        |endpoint| endpoint.challenge_scope("mcp"),
    )
    .await;
    place.login(&[]).await;
    assert_eq!(asked(&place), [Some("mcp offline_access".to_owned())]);
    place.finish();
}

#[tokio::test]
async fn what_was_granted_is_stored_and_not_what_was_asked_for() {
    let place = Place::with(
        |authority| authority.grants(|_| Some("mcp:read".into())),
        |endpoint| endpoint.challenge_scope("mcp:read mcp:write"),
    )
    .await;
    place.login(&[]).await;
    assert_eq!(place.record()["granted"], serde_json::json!(["mcp:read"]));
    place.finish();
}

async fn lacking(authority: impl FnOnce(AuthorityBuilder) -> AuthorityBuilder) -> Place {
    let place =
        Place::with(authority, |endpoint| endpoint.challenge_scope("a").needs_scope("sleep", "b")).await;
    place.login(&[]).await;
    place
}

/// The call is answered with what is missing; nothing of the session ends, no browser opens in the middle of it; the next
/// sign-in asks for everything that was had and that was missing, and the running session goes on with it.
#[tokio::test]
async fn a_missing_scope_is_named_and_asked_for_with_the_rest() {
    let place = lacking(|authority| authority).await;
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    for _ in 0..2 {
        let answer = harness.call("sleep", "{}").await;
        let error = answer.error();
        assert_eq!(error["data"]["reason"], "insufficient_scope", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("the scope b") && message.contains("--login"), "{message}");
    }
    calls(&mut harness).await;
    assert!(harness.sign_in_links().is_empty());
    place.login(&[]).await;
    assert_eq!(asked(&place), [Some("a".to_owned()), Some("a b".to_owned())]);
    place.endpoint.wake();
    let answer = harness.call("sleep", "{}").await;
    assert!(!answer.is_error(), "{}", answer.text());
    leaves(harness).await;
    place.finish();
}

#[tokio::test]
async fn a_scope_that_is_never_granted_is_not_asked_for_in_a_loop() {
    let place = lacking(|authority| authority.grants(|_| Some("a".into()))).await;
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    for _ in 0..2 {
        let answer = harness.call("sleep", "{}").await;
        assert_eq!(answer.error()["data"]["reason"], "insufficient_scope", "{}", answer.text());
        place.login(&[]).await;
    }
    assert_eq!(asked(&place)[1..], [Some("a b".to_owned()), Some("a b".to_owned())]);
    let answer = harness.call("sleep", "{}").await;
    assert_eq!(answer.error()["data"]["reason"], "insufficient_scope");
    calls(&mut harness).await;
    leaves(harness).await;
    place.finish();
}
