//! What happened while nobody could look is told afterwards, once.

use serde_json::json;

use super::{Seats, listening, next_event, next_sentence, read_again, uri};
use crate::{
    opened::BOTH,
    subscriptions::update,
    support::{Endpoint, Era, Harness, Recorded, Reply},
};

/// The nth listen or subscription that is for that status.
async fn watched(endpoint: &Endpoint, era: Era, seat: u32, nth: usize) {
    let is_for = |request: &&Recorded| match era {
        Era::Modern => request.param("notifications")["resourceSubscriptions"] == json!([uri(seat)]),
        Era::Legacy => request.method() == "resources/subscribe" && request.param("uri") == &json!(uri(seat)),
    };
    endpoint.wait_for(|all| all.iter().filter(is_for).count() > nth).await;
}

/// Seated in m7, and told of it.
async fn in_a_match(era: Era) -> (Harness, Endpoint, Seats) {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "playing", "match": "m7"}));
    let endpoint = seats.endpoint(era).sessions().start().await;
    let mut harness = listening(&endpoint, &[]).await;
    assert_eq!(next_event(&mut harness).await["event"], "seated");
    watched(&endpoint, era, 1, 0).await;
    (harness, endpoint, seats)
}

async fn cut(endpoint: &Endpoint, era: Era) {
    match era {
        Era::Modern => endpoint.cut_listens().await,
        Era::Legacy => {
            endpoint.get_streams(1).await;
            endpoint.cut_get_streams().await;
        }
    }
}

#[tokio::test]
async fn an_end_while_the_stream_was_cut_is_told_once_with_its_receipt() {
    for era in BOTH {
        let (mut harness, endpoint, seats) = in_a_match(era).await;
        let next =
            json!({"phase": "playing", "match": "m8", "previousMatch": {"match": "m7", "outcome": "lost"}});
        seats.put(1, "runner", &next);
        cut(&endpoint, era).await;
        assert_eq!(next_sentence(&mut harness).await, "The match is over for runner: lost.");
        assert_eq!(
            next_event(&mut harness).await,
            json!({"event": "seated", "role": "runner", "match_id": "m8"})
        );
        // Cut once more, and nothing happened: nothing is told.
        let before = endpoint.requests_of("resources/read").len();
        cut(&endpoint, era).await;
        endpoint.arrived("resources/read", before).await;
        seats.put(1, "runner", &json!({"phase": "ended", "match": "m8", "outcome": "won"}));
        read_again(&endpoint, era, 1).await;
        assert_eq!(next_sentence(&mut harness).await, "The match is over for runner: won.");
    }
}

#[tokio::test]
async fn a_role_granted_while_the_stream_was_cut_is_followed() {
    for era in BOTH {
        let (mut harness, endpoint, seats) = in_a_match(era).await;
        seats.put(2, "keeper", &json!({"phase": "playing", "match": "m7"}));
        cut(&endpoint, era).await;
        assert_eq!(next_event(&mut harness).await["role"], "keeper");
    }
}

#[tokio::test]
async fn a_server_that_is_started_again_with_other_uris_is_listed_and_watched_afresh() {
    for era in BOTH {
        let (mut harness, mut endpoint, seats) = in_a_match(era).await;
        endpoint.stop().await;
        seats.clear();
        seats.put(9, "runner", &json!({"phase": "ended", "match": "m7", "outcome": "draw"}));
        endpoint.start_again().await;
        assert_eq!(next_sentence(&mut harness).await, "The match is over for runner: draw.");
        watched(&endpoint, era, 9, 0).await;
        seats.put(9, "runner", &json!({"phase": "playing", "match": "m8"}));
        update(&endpoint, era, &uri(9)).await;
        assert_eq!(next_event(&mut harness).await["match_id"], "m8");
    }
}

#[tokio::test]
async fn uris_that_died_without_a_word_are_listed_afresh() {
    for era in BOTH {
        let (mut harness, endpoint, seats) = in_a_match(era).await;
        seats.clear();
        seats.put(9, "runner", &json!({"phase": "ended", "match": "m7", "outcome": "won"}));
        // Reading the old one is an error now.
        update(&endpoint, era, &uri(1)).await;
        assert_eq!(next_sentence(&mut harness).await, "The match is over for runner: won.");
    }
}

#[tokio::test]
async fn while_the_endpoint_says_401_or_500_it_is_asked_again_after_pauses() {
    for status in [401, 500] {
        let (mut harness, endpoint, seats) = in_a_match(Era::Modern).await;
        endpoint.set("resources/list", move |_| Reply::status(status));
        endpoint.set("resources/read", move |_| Reply::status(status));
        let before = endpoint.requests_of("resources/list").len();
        endpoint.cut_listens().await;
        endpoint.arrived("resources/list", before + 1).await;
        seats.put(1, "runner", &json!({"phase": "lobby"}));
        let (listed, read) = (seats.clone(), seats.clone());
        endpoint.set("resources/list", move |_| listed.list(Era::Modern));
        endpoint.set("resources/read", move |request| read.read(Era::Modern, request));
        assert_eq!(next_sentence(&mut harness).await, "The match is over for runner.");
        // Two or three attempts, not hundreds.
        assert!(endpoint.requests_of("resources/list").len() < before + 6);
    }
}

#[tokio::test]
async fn an_endpoint_that_ends_the_stream_in_good_order_is_listened_to_again() {
    let (mut harness, endpoint, seats) = in_a_match(Era::Modern).await;
    endpoint.end_listens().await;
    watched(&endpoint, Era::Modern, 1, 1).await;
    seats.put(1, "runner", &json!({"phase": "ended", "match": "m7", "outcome": "won"}));
    update(&endpoint, Era::Modern, &uri(1)).await;
    assert_eq!(next_sentence(&mut harness).await, "The match is over for runner: won.");
}
