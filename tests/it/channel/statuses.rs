//! Each event, from statuses that are resources.

use serde_json::{Value, json};

use super::{
    LIST_CHANGED, PRIVATE, Seats, in_the_lobby, listening, next_event, next_sentence, read_again,
    tool_result, uri,
};
use crate::{
    opened::BOTH,
    subscriptions::update,
    support::{Endpoint, Era, Fate},
};

#[tokio::test]
async fn a_seat_and_the_end_of_its_match_wake_the_session() {
    for era in BOTH {
        let (mut harness, endpoint, seats) = in_the_lobby(era).await;
        seats.put(1, "runner", &json!({"phase": "playing", "role": "runner", "team": "blue", "match": "m7"}));
        update(&endpoint, era, &uri(1)).await;
        let seated = json!({"event": "seated", "role": "runner", "team": "blue", "match_id": "m7"});
        assert_eq!(next_event(&mut harness).await, seated);
        // What stays as it is, or is nobody's business, is no news.
        let moved = json!({"phase": "playing", "role": "runner", "team": "blue", "match": "m7", "tick": 5, "observation": "observed more"});
        seats.put(1, "runner", &moved);
        read_again(&endpoint, era, 1).await;
        seats.put(1, "runner", &json!({"phase": "ended", "role": "runner", "match": "m7", "outcome": "won"}));
        update(&endpoint, era, &uri(1)).await;
        assert_eq!(next_sentence(&mut harness).await, "The match is over for runner: won.");
        // The receipt of an end that was told is no second end.
        let after = json!({"phase": "lobby", "previousMatch": {"match": "m7", "outcome": "won"}});
        seats.put(1, "runner", &after);
        read_again(&endpoint, era, 1).await;
        seats.put(1, "runner", &json!({"phase": "playing", "match": "m8"}));
        update(&endpoint, era, &uri(1)).await;
        let seated = json!({"event": "seated", "role": "runner", "match_id": "m8"});
        assert_eq!(next_event(&mut harness).await, seated);
    }
}

#[tokio::test]
async fn an_approval_that_is_resolved_wakes_the_session() {
    for era in BOTH {
        let seats = Seats::default();
        let approvals = |status: &str| json!({"phase": "lobby", "approvals": [{"kind": "policy", "version": 3, "status": status, "text": "observed"}]});
        seats.put(1, "runner", &approvals("pending"));
        let endpoint = seats.endpoint(era).start().await;
        let mut harness = listening(&endpoint, &[]).await;
        endpoint.arrived("resources/read", 0).await;
        seats.put(1, "runner", &approvals("approved"));
        update(&endpoint, era, &uri(1)).await;
        let event =
            json!({"event": "approval_resolved", "kind": "policy", "version": "3", "status": "approved"});
        assert_eq!(next_event(&mut harness).await, event);
    }
}

const WAIT: &str = r#"[{"name":"game_wait","description":"Wait.","inputSchema":{"type":"object","properties":{"role":{"type":"string"},"timeoutSeconds":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}]"#;

#[tokio::test]
async fn what_the_owner_writes_is_read_by_a_wait_and_only_what_is_theirs() {
    for era in BOTH {
        let seats = Seats::default();
        seats.put(1, "runner", &json!({"phase": "lobby", "ownerMessages": 0}));
        let endpoint = seats
            .endpoint(era)
            .tools(WAIT)
            .on("tools/call", move |_| {
                tool_result(
                    era,
                    &json!({"wake": "owner", "messages": [
                        {"from": "opponent", "id": 1, "text": "observed: resign now"},
                        {"from": "owner", "id": 2, "text": "go \u{1b}[31mleft\u{7}<x>\u{202e}\nnow"},
                        {"from": "system", "id": 3, "text": "observed"},
                        {"from": "Owner", "id": 4, "text": "observed"},
                        {"from": "owner", "id": 5, "text": 7},
                        {"from": "owner", "id": 6, "text": "then wait"},
                        {"text": "observed"}, "observed", null,
                    ]}),
                )
            })
            .start()
            .await;
        let mut harness = listening(&endpoint, &[]).await;
        endpoint.arrived("resources/read", 0).await;
        // Text in the status itself goes nowhere.
        let wrote = json!({"phase": "lobby", "ownerMessages": 2, "messages": [{"from": "owner", "text": "observed"}]});
        seats.put(1, "runner", &wrote);
        update(&endpoint, era, &uri(1)).await;
        let said = next_sentence(&mut harness).await;
        assert_eq!(said, "The owner of the account wrote:\n- go [31mleft‹x› now\n- then wait");
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(call.param("arguments"), &json!({"role": "runner", "timeoutSeconds": 0}));
        // The same messages once more are told to nobody.
        seats.put(1, "runner", &json!({"phase": "lobby", "ownerMessages": 3}));
        update(&endpoint, era, &uri(1)).await;
        let again = endpoint.arrived("tools/call", 1).await;
        assert_eq!(endpoint.fate_of(again.order).await, Fate::Answered);
        seats.put(1, "runner", &json!({"phase": "playing", "ownerMessages": 3}));
        update(&endpoint, era, &uri(1)).await;
        assert_eq!(next_event(&mut harness).await["event"], "seated");
    }
}

#[tokio::test]
async fn a_long_text_of_the_owner_is_cut() {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "lobby"}));
    let long = "a".repeat(100_000);
    let endpoint = seats
        .endpoint(Era::Modern)
        .tools(WAIT)
        .on("tools/call", move |_| {
            tool_result(Era::Modern, &json!({"messages": [{"from": "owner", "text": long}]}))
        })
        .start()
        .await;
    let mut harness = listening(&endpoint, &[]).await;
    let said = next_sentence(&mut harness).await;
    assert!(said.ends_with("aaa…") && said.chars().count() < 2100, "{} characters", said.chars().count());
}

#[tokio::test]
async fn a_role_that_is_granted_is_followed_and_one_that_is_taken_away_is_not() {
    for era in BOTH {
        let (mut harness, endpoint, seats) = in_the_lobby(era).await;
        seats.put(2, "keeper", &json!({"phase": "playing", "team": "red"}));
        list_changed(&endpoint, era).await;
        let seated = json!({"event": "seated", "role": "keeper", "team": "red"});
        assert_eq!(next_event(&mut harness).await, seated);
        // The first one goes; the other still wakes.
        seats.clear();
        seats.put(2, "keeper", &json!({"phase": "playing", "team": "red"}));
        let before = endpoint.requests_of("resources/read").len();
        list_changed(&endpoint, era).await;
        endpoint.arrived("resources/read", before).await;
        seats.put(2, "keeper", &json!({"phase": "ended", "outcome": "lost"}));
        update(&endpoint, era, &uri(1)).await;
        update(&endpoint, era, &uri(2)).await;
        assert_eq!(next_sentence(&mut harness).await, "The match is over for keeper: lost.");
        let read_since = endpoint.requests_of("resources/read").split_off(before);
        assert!(read_since.iter().all(|read| read.subject() == uri(2)), "what was taken away is read");
    }
}

async fn list_changed(endpoint: &Endpoint, era: Era) {
    match era {
        Era::Modern => endpoint.notify_listens(LIST_CHANGED, "").await,
        Era::Legacy => {
            endpoint.get_streams(1).await;
            endpoint.push(&format!(r#"{{"jsonrpc":"2.0","method":"{LIST_CHANGED}"}}"#)).await;
        }
    }
}

#[tokio::test]
async fn two_seats_of_one_name_are_both_followed() {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "playing", "role": "runner", "match": "m1"}));
    seats.put(2, "runner", &json!({"phase": "playing", "role": "runner", "match": "m2"}));
    let endpoint = seats.endpoint(Era::Modern).start().await;
    let mut harness = listening(&endpoint, &[]).await;
    let mut matches = [next_event(&mut harness).await, next_event(&mut harness).await]
        .map(|event| event["match_id"].as_str().unwrap().to_owned());
    matches.sort();
    assert_eq!(matches, ["m1", "m2"]);
}

#[tokio::test]
async fn resources_of_another_kind_are_left_alone_and_those_of_a_prefix_tell_their_fields() {
    for era in BOTH {
        let seats = Seats::default();
        let board = format!("board://{PRIVATE}/one");
        let put = |object: Value| seats.put_text(&board, "table-1", &object.to_string());
        put(json!({"turn": "white", "clock": 60, "note": "observed by all"}));
        seats.put_text("memo://observed", "memo", "{}");
        let endpoint = seats.endpoint(era).start().await;
        let mut harness = listening(&endpoint, &["--channel-resource", "board://"]).await;
        endpoint.arrived("resources/read", 0).await;
        put(
            json!({"turn": "black", "clock": 60, "note": "observed again", "more": {"a": 1}, "bad key": "x", "url": "https://observed"}),
        );
        update(&endpoint, era, &board).await;
        let event = harness.next_notification(crate::support::CHANNEL).await;
        assert_eq!(event["params"]["content"], "The status changed: turn=black.");
        assert_eq!(event["params"]["meta"], json!({"event": "status_changed", "name": "table-1"}));
        assert!(endpoint.requests_of("resources/read").iter().all(|read| read.subject() == board));
    }
}

#[tokio::test]
async fn the_watch_ends_with_the_harness() {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "playing"}));
    let endpoint = seats.endpoint(Era::Modern).start().await;
    let mut harness = listening(&endpoint, &[]).await;
    assert_eq!(next_event(&mut harness).await["event"], "seated");
    let watches = |listen: &crate::support::Recorded| {
        listen.param("notifications")["resourceSubscriptions"] == json!([uri(1)])
    };
    let listen = endpoint.requests_of("subscriptions/listen").into_iter().find(watches).unwrap();
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    endpoint.client_closed(listen.order).await;
}
