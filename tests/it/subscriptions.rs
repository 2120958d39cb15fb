//! Watching resources: `subscriptions/listen` on one side, `resources/subscribe` on the other, or the same on both.

use std::sync::{Arc, atomic::AtomicUsize};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    opened::{BOTH, code, leave, opened},
    support::{Endpoint, EndpointBuilder, Era, Fate, Harness, Recorded, Reply, Script, four_eras},
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const LISTEN: &str = "subscriptions/listen";

/// An endpoint that announces nothing but resources, so that the program has no listen of its own.
fn watchable(era: Era) -> EndpointBuilder {
    Endpoint::era(era).capabilities(r#"{"tools":{},"resources":{"subscribe":true,"listChanged":true}}"#)
}

/// The URIs that a listen asks for.
fn asked(listen: &Recorded) -> Vec<String> {
    let uris = listen.param("notifications")["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
    uris.iter().map(|uri| uri.as_str().unwrap().to_owned()).collect()
}

/// Waits for the listen that asks for exactly those URIs.
async fn listen_for(endpoint: &Endpoint, uris: &[&str]) -> Recorded {
    let fits = |request: &Recorded| request.method() == LISTEN && asked(request) == uris;
    endpoint.wait_for(|all| all.iter().any(fits)).await;
    endpoint.requests().into_iter().rfind(fits).unwrap()
}

/// The harness starts to watch; a modern one gets the id of its listen.
async fn watch(harness: &mut Harness, era: Era, uri: &str) -> Option<u64> {
    if era == Era::Legacy {
        let answer = harness.ask("resources/subscribe", &json!({ "uri": uri }).to_string()).await;
        assert_eq!(answer.result(), json!({}));
        return None;
    }
    let notifications = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let id = harness.request(LISTEN, &notifications.to_string()).await;
    let acknowledged = harness.next_notification(ACKNOWLEDGED).await;
    assert_eq!(acknowledged["params"]["notifications"], notifications["notifications"]);
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION], json!(id));
    Some(id)
}

/// The harness no longer watches.
async fn unwatch(harness: &mut Harness, listen: Option<u64>, uri: &str) {
    match listen {
        Some(id) => harness.cancel(id).await,
        None => {
            let answer = harness.ask("resources/unsubscribe", &json!({ "uri": uri }).to_string()).await;
            assert_eq!(answer.result(), json!({}));
        }
    }
}

/// The endpoint says that a resource changed.
pub async fn update(endpoint: &Endpoint, era: Era, uri: &str) {
    if era == Era::Modern {
        endpoint.notify_listens(UPDATED, &format!(r#""uri":"{uri}""#)).await;
    } else {
        endpoint.get_streams(1).await;
        endpoint
            .push(&format!(r#"{{"jsonrpc":"2.0","method":"{UPDATED}","params":{{"uri":"{uri}"}}}}"#))
            .await;
    }
}

/// Asserts that the harness is told of a change of that URI, in the form of its era.
async fn told(harness: &mut Harness, listen: Option<u64>, uri: &str) {
    let params = &harness.next_notification(UPDATED).await["params"];
    assert_eq!(params["uri"], uri);
    let stamp = params["_meta"].get(SUBSCRIPTION);
    assert_eq!(stamp, listen.map(|id| json!(id)).as_ref(), "{params}");
}

four_eras!(
    a_change_of_a_watched_resource_reaches_the_harness_until_it_looks_away,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened(harness_era, watchable(endpoint_era)).await;
        let listen = watch(&mut harness, harness_era, "memo://one").await;
        for _ in 0..2 {
            update(&endpoint, endpoint_era, "memo://one").await;
            told(&mut harness, listen, "memo://one").await;
        }
        unwatch(&mut harness, listen, "memo://one").await;
        match endpoint_era {
            Era::Modern => endpoint.client_closed(listen_for(&endpoint, &["memo://one"]).await.order).await,
            Era::Legacy => {
                assert_eq!(endpoint.arrived("resources/subscribe", 0).await.param("uri"), "memo://one");
                assert_eq!(endpoint.arrived("resources/unsubscribe", 0).await.param("uri"), "memo://one");
            }
        }
    }
);

four_eras!(
    a_change_below_a_watched_resource_is_told_and_one_beside_it_not,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened(harness_era, watchable(endpoint_era)).await;
        let listen = watch(&mut harness, harness_era, "memo://one").await;
        update(&endpoint, endpoint_era, "other://two").await;
        update(&endpoint, endpoint_era, "memo://one/part").await;
        told(&mut harness, listen, "memo://one/part").await;
    }
);

four_eras!(
    a_change_of_the_list_of_resources_is_told_and_none_of_tools_or_prompts,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
        if harness_era == Era::Modern {
            let all = r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}"#;
            harness.request(LISTEN, all).await;
            let acknowledged = harness.next_notification(ACKNOWLEDGED).await;
            assert_eq!(acknowledged["params"]["notifications"], json!({"resourcesListChanged":true}));
        }
        let changed = |what: &str| format!("notifications/{what}/list_changed");
        if endpoint_era == Era::Modern {
            let lists = |request: &Recorded| request.param("notifications")["resourcesListChanged"] == true;
            // One is the program's own, for the templates.
            let both =
                |all: &[Recorded]| all.iter().filter(|one| one.method() == LISTEN && lists(one)).count();
            endpoint.wait_for(|all| both(all) >= 2).await;
        } else {
            endpoint.get_streams(1).await;
        }
        for what in ["tools", "prompts", "resources"] {
            match endpoint_era {
                Era::Modern => endpoint.notify_listens(&changed(what), "").await,
                Era::Legacy => {
                    endpoint.push(&format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, changed(what))).await;
                }
            }
        }
        harness.next_notification(&changed("resources")).await;
        let told = harness.notifications();
        let others = |line: &&Value| ["tools", "prompts"].iter().any(|what| line["method"] == changed(what));
        assert_eq!(told.iter().filter(others).count(), 0, "{told:?}");
    }
);

four_eras!(an_open_watch_does_not_delay_leaving, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, watchable(endpoint_era)).await;
    watch(&mut harness, harness_era, "memo://one").await;
    leave(&mut harness).await;
    if endpoint_era == Era::Modern {
        endpoint.client_closed(listen_for(&endpoint, &["memo://one"]).await.order).await;
    }
});

four_eras!(a_watch_that_broke_is_opened_again, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, watchable(endpoint_era)).await;
    let listen = watch(&mut harness, harness_era, "memo://one").await;
    match endpoint_era {
        Era::Modern => {
            endpoint.cut_listens().await;
            // what happened meanwhile is lost, so the harness is told to look
            told(&mut harness, listen, "memo://one").await;
            // One is the program's own.
            endpoint.listens(2).await;
        }
        Era::Legacy => {
            endpoint.get_streams(1).await;
            endpoint.cut_get_streams().await;
            endpoint.arrived("GET", 1).await;
        }
    }
    update(&endpoint, endpoint_era, "memo://one").await;
    told(&mut harness, listen, "memo://one").await;
});

#[tokio::test]
async fn each_uri_of_a_broken_watch_is_told_after_it_is_open_again() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, watchable(Era::Modern)).await;
        let mut expected = Vec::new();
        if harness_era == Era::Modern {
            let two = r#"{"notifications":{"resourceSubscriptions":["memo://one","memo://two"]}}"#;
            let listen = harness.request(LISTEN, two).await;
            harness.next_notification(ACKNOWLEDGED).await;
            expected.push(Some(listen));
        } else {
            watch(&mut harness, harness_era, "memo://one").await;
            watch(&mut harness, harness_era, "memo://two").await;
            expected.push(None);
        }
        let first = listen_for(&endpoint, &["memo://one", "memo://two"]).await;
        // One is the program's own.
        endpoint.listens(2).await;
        endpoint.cut_listens().await;
        let mut uris = Vec::new();
        for _ in 0..2 {
            let params = harness.next_notification(UPDATED).await["params"].clone();
            assert_eq!(params["_meta"].get(SUBSCRIPTION).and_then(Value::as_u64), expected[0]);
            uris.push(params["uri"].as_str().unwrap().to_owned());
        }
        uris.sort();
        assert_eq!(uris, ["memo://one", "memo://two"]);
        let again = listen_for(&endpoint, &["memo://one", "memo://two"]).await;
        assert!(again.order > first.order);
    }
}

#[tokio::test]
async fn each_uri_of_a_legacy_session_is_told_after_its_stream_is_open_again() {
    for harness_era in BOTH {
        let (mut harness, endpoint) = opened(harness_era, watchable(Era::Legacy)).await;
        let listen = watch(&mut harness, harness_era, "memo://one").await;
        endpoint.get_streams(1).await;
        endpoint.cut_get_streams().await;
        told(&mut harness, listen, "memo://one").await;
    }
}

#[tokio::test]
async fn a_legacy_harness_that_watches_more_is_never_without_a_listen() {
    let gate = Arc::new(Notify::new());
    let open = gate.clone();
    let count = AtomicUsize::new(0);
    // the second listen is acknowledged when the test says so
    let endpoint = watchable(Era::Modern).on(LISTEN, move |listen| {
        let stamp = format!(r#""_meta":{{"{SUBSCRIPTION}":{}}}"#, listen.id_raw());
        let params = format!(r#"{{"notifications":{},{stamp}}}"#, listen.param("notifications"));
        let update = format!(r#"{{"uri":"memo://one",{stamp}}}"#);
        let early = Script::new();
        let is_second = asked(listen).len() == 2;
        count.fetch_add(usize::from(is_second), std::sync::atomic::Ordering::Relaxed);
        let early = if is_second { early.wait(&gate) } else { early };
        Reply::sse(early.notification(ACKNOWLEDGED, &params).notification(UPDATED, &update).hang())
    });
    let (mut harness, endpoint) = opened(Era::Legacy, endpoint).await;
    watch(&mut harness, Era::Legacy, "memo://one").await;
    told(&mut harness, None, "memo://one").await;
    let id = harness.request("resources/subscribe", r#"{"uri":"memo://two"}"#).await;
    let first = listen_for(&endpoint, &["memo://one"]).await;
    let second = listen_for(&endpoint, &["memo://one", "memo://two"]).await;
    assert_eq!(endpoint.requests()[first.order].fate, Fate::Open);
    open.notify_one();
    assert_eq!(harness.answer(id).await.result(), json!({}));
    endpoint.client_closed(first.order).await;
    assert_eq!(endpoint.requests()[second.order].fate, Fate::Open);
    // fewer again
    unwatch(&mut harness, None, "memo://one").await;
    listen_for(&endpoint, &["memo://two"]).await;
    endpoint.client_closed(second.order).await;
}

#[tokio::test]
async fn what_a_modern_endpoint_does_not_acknowledge_is_not_subscribed() {
    let endpoint = watchable(Era::Modern).listen_filter(r#"{"resourceSubscriptions":["memo://one"]}"#);
    let (mut harness, endpoint) = opened(Era::Legacy, endpoint).await;
    assert!(harness.ask("resources/subscribe", r#"{"uri":"memo://two"}"#).await.is_error());
    assert!(!harness.ask("resources/subscribe", r#"{"uri":"memo://one"}"#).await.is_error());
    update(&endpoint, Era::Modern, "memo://one").await;
    told(&mut harness, None, "memo://one").await;
}

#[tokio::test]
async fn a_subscription_that_a_legacy_endpoint_refuses_is_refused() {
    let endpoint =
        watchable(Era::Legacy).on("resources/subscribe", |_| Reply::error_code(-32002, "Resource not found"));
    let (mut harness, _endpoint) = opened(Era::Legacy, endpoint).await;
    let answer = harness.ask("resources/subscribe", r#"{"uri":"memo://nine"}"#).await;
    assert_eq!(code(&answer), -32002, "{}", answer.text());
}

#[tokio::test]
async fn a_second_subscription_of_a_legacy_harness_is_no_second_one() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Legacy, watchable(endpoint_era)).await;
        watch(&mut harness, Era::Legacy, "memo://one").await;
        watch(&mut harness, Era::Legacy, "memo://one").await;
        update(&endpoint, endpoint_era, "memo://one").await;
        told(&mut harness, None, "memo://one").await;
        unwatch(&mut harness, None, "memo://one").await;
        // the next one shows that the first change was told once
        watch(&mut harness, Era::Legacy, "memo://two").await;
        update(&endpoint, endpoint_era, "memo://two").await;
        told(&mut harness, None, "memo://two").await;
    }
}

#[tokio::test]
async fn a_harness_that_never_subscribed_may_unsubscribe() {
    for endpoint_era in BOTH {
        let (mut harness, _endpoint) = opened(Era::Legacy, watchable(endpoint_era)).await;
        unwatch(&mut harness, None, "memo://never").await;
    }
}

#[tokio::test]
async fn nothing_can_be_watched_where_the_endpoint_does_not_offer_it() {
    for endpoint_era in BOTH {
        let endpoint = Endpoint::era(endpoint_era).capabilities(r#"{"resources":{}}"#);
        let (mut harness, endpoint) = opened(Era::Legacy, endpoint).await;
        let answer = harness.ask("resources/subscribe", r#"{"uri":"memo://one"}"#).await;
        assert_eq!(code(&answer), -32601);
        assert!(endpoint.requests_of("resources/subscribe").is_empty());
        assert!(endpoint.requests_of(LISTEN).is_empty());
    }
}
