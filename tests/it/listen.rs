//! A modern harness that listens: acknowledgements, ids, several listens, and their ends.

use serde_json::{Value, json};

use crate::{
    opened::{BOTH, code, leave, line, opened},
    support::{Endpoint, EndpointBuilder, Era, Harness, LEGACY, Recorded, Reply},
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const LISTEN: &str = "subscriptions/listen";

fn watchable(era: Era) -> EndpointBuilder {
    Endpoint::era(era).capabilities(r#"{"tools":{},"resources":{"subscribe":true,"listChanged":true}}"#)
}

/// Sends a listen with that id and gives what is acknowledged.
async fn listen(harness: &mut Harness, id: &str, notifications: &str) -> Value {
    let members = format!(r#""notifications":{notifications}"#);
    harness.send_line(line(Era::Modern, id, LISTEN, &members).as_bytes()).await;
    let acknowledged = harness.next_notification(ACKNOWLEDGED).await;
    assert_eq!(acknowledged["params"]["_meta"][SUBSCRIPTION].to_string(), id, "the id with its type");
    acknowledged["params"]["notifications"].clone()
}

async fn update(endpoint: &Endpoint, era: Era, uri: &str) {
    match era {
        Era::Modern => endpoint.notify_listens(UPDATED, &format!(r#""uri":"{uri}""#)).await,
        Era::Legacy => {
            endpoint.get_streams(1).await;
            endpoint
                .push(&format!(r#"{{"jsonrpc":"2.0","method":"{UPDATED}","params":{{"uri":"{uri}"}}}}"#))
                .await;
        }
    }
}

/// The next updates, as pairs of listen and URI, sorted.
async fn updates(harness: &mut Harness, count: usize) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let params = harness.next_notification(UPDATED).await["params"].clone();
        seen.push((params["_meta"][SUBSCRIPTION].to_string(), params["uri"].as_str().unwrap().to_owned()));
    }
    seen.sort();
    seen
}

fn pair(id: &str, uri: &str) -> (String, String) {
    (id.to_owned(), uri.to_owned())
}

const ONE: &str = r#"{"resourceSubscriptions":["memo://one"]}"#;
const TWO: &str = r#"{"resourceSubscriptions":["memo://two","memo://one"]}"#;

#[tokio::test]
async fn a_listen_for_tools_and_prompts_alone_is_acknowledged_empty_and_stays_open() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Modern, watchable(endpoint_era)).await;
        for (id, notifications) in [
            (r#""listen:0""#, r#"{"toolsListChanged":true}"#),
            ("10", r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":false}"#),
            ("11", "{}"),
            ("12", r#"{"resourceSubscriptions":[]}"#),
        ] {
            let acknowledged = listen(&mut harness, id, notifications).await;
            assert!(
                [json!({}), json!({"resourceSubscriptions":[]})].contains(&acknowledged),
                "{acknowledged}"
            );
        }
        assert!(!harness.ask("tools/list", "{}").await.is_error());
        let answered = |line: &Value| {
            line["method"].is_null() && ["listen:0"].contains(&line["id"].as_str().unwrap_or_default())
        };
        assert!(!harness.lines().iter().any(answered), "{:?}", harness.lines());
        // The program watches the lists for itself; the harness's listens do not reach the endpoint.
        assert!(endpoint.requests_of(LISTEN).len() <= 1, "the endpoint is not bothered with it");
        leave(&mut harness).await;
    }
}

#[tokio::test]
async fn the_ids_of_listens_keep_their_type() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Modern, watchable(endpoint_era)).await;
        assert_eq!(listen(&mut harness, "17", ONE).await, json!({"resourceSubscriptions":["memo://one"]}));
        listen(&mut harness, r#""17""#, ONE).await;
        listen(&mut harness, r#""""#, ONE).await;
        update(&endpoint, endpoint_era, "memo://one").await;
        let expected = [pair(r#""""#, "memo://one"), pair(r#""17""#, "memo://one"), pair("17", "memo://one")];
        assert_eq!(updates(&mut harness, 3).await, expected);
    }
}

#[tokio::test]
async fn each_listen_hears_what_it_asked_for() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Modern, watchable(endpoint_era)).await;
        listen(&mut harness, "31", ONE).await;
        listen(&mut harness, "32", TWO).await;
        update(&endpoint, endpoint_era, "memo://two").await;
        assert_eq!(updates(&mut harness, 1).await, [pair("32", "memo://two")]);
        update(&endpoint, endpoint_era, "memo://one").await;
        assert_eq!(updates(&mut harness, 2).await, [pair("31", "memo://one"), pair("32", "memo://one")]);
    }
}

#[tokio::test]
async fn a_listen_that_ends_leaves_the_other_one_its_subscription() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) = opened(Era::Modern, watchable(endpoint_era)).await;
        listen(&mut harness, "31", ONE).await;
        listen(&mut harness, "32", ONE).await;
        harness.cancel(31).await;
        // a round trip behind the cancellation
        assert!(!harness.ask("tools/list", "{}").await.is_error());
        update(&endpoint, endpoint_era, "memo://one").await;
        assert_eq!(updates(&mut harness, 1).await, [pair("32", "memo://one")]);
        harness.cancel(32).await;
        match endpoint_era {
            Era::Modern => endpoint.listens(1).await,
            Era::Legacy => {
                endpoint.arrived("resources/unsubscribe", 0).await;
                assert_eq!(endpoint.requests_of("resources/subscribe").len(), 1, "counted, not repeated");
                assert_eq!(endpoint.requests_of("resources/unsubscribe").len(), 1);
            }
        }
    }
}

#[tokio::test]
async fn the_acknowledgement_holds_what_the_endpoint_honours() {
    let endpoint = watchable(Era::Modern).listen_filter(r#"{"resourceSubscriptions":["memo://one"]}"#);
    let (mut harness, _endpoint) = opened(Era::Modern, endpoint).await;
    assert_eq!(listen(&mut harness, "31", TWO).await, json!({"resourceSubscriptions":["memo://one"]}));

    let refuse_two = |subscribe: &Recorded| match subscribe.subject() {
        "memo://two" => Reply::error_code(-32002, "Resource not found"),
        _ => Reply::result("{}"),
    };
    let endpoint = watchable(Era::Legacy).on("resources/subscribe", refuse_two);
    let (mut harness, _endpoint) = opened(Era::Modern, endpoint).await;
    assert_eq!(listen(&mut harness, "31", TWO).await, json!({"resourceSubscriptions":["memo://one"]}));
}

#[tokio::test]
async fn what_the_endpoint_does_not_offer_is_not_acknowledged() {
    for endpoint_era in BOTH {
        let endpoint = Endpoint::era(endpoint_era).capabilities(r#"{"tools":{},"resources":{}}"#);
        let (mut harness, endpoint) = opened(Era::Modern, endpoint.listen_filter("{}")).await;
        let all = r#"{"resourcesListChanged":true,"resourceSubscriptions":["memo://one"]}"#;
        let acknowledged = listen(&mut harness, "31", all).await;
        assert_ne!(acknowledged["resourcesListChanged"], true);
        assert!(acknowledged["resourceSubscriptions"].as_array().is_none_or(Vec::is_empty), "{acknowledged}");
        assert!(endpoint.requests_of("resources/subscribe").is_empty());
    }
}

#[tokio::test]
async fn a_listen_without_a_filter_is_refused() {
    for endpoint_era in BOTH {
        let (mut harness, _endpoint) = opened(Era::Modern, watchable(endpoint_era)).await;
        for params in ["{}", r#"{"notifications":7}"#] {
            assert_eq!(code(&harness.ask(LISTEN, params).await), -32602, "{params}");
        }
    }
}

#[tokio::test]
async fn each_era_has_its_own_way_to_watch() {
    for endpoint_era in BOTH {
        let (mut harness, _endpoint) = opened(Era::Modern, watchable(endpoint_era)).await;
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            assert_eq!(code(&harness.ask(method, r#"{"uri":"memo://one"}"#).await), -32601, "{method}");
        }
        harness.initialize(LEGACY, "{}").await;
        let params = format!(r#"{{"notifications":{ONE}}}"#);
        assert_eq!(code(&harness.ask(LISTEN, &params).await), -32601);
    }
}
