//! What an endpoint may not ask: without the harness's capability, or without the user's leave.

use serde_json::{Value, json};

use crate::{
    asking::{Asker, CANCEL, FORM, Question, asking, told_by},
    opened::{FORMS, declared, opened, opened_with},
    support::{Endpoint, Era, Harness, four_eras},
};

const SAMPLE: Question = (
    "sampling/createMessage",
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10,"temperature":1.0}"#,
);
const ROOTS: Question = ("roots/list", "{}");
const ALL: &str = r#"{"elicitation":{},"sampling":{"context":{}},"roots":{"listChanged":true}}"#;
const SAMPLED: &str =
    r#"{"role":"assistant","content":{"type":"text","text":"ho"},"model":"m","stopReason":"endTurn"}"#;
const ROOTED: &str = r#"{"roots":[{"uri":"file:///w","name":"w"}]}"#;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

four_eras!(a_harness_that_cannot_ask_is_not_declared_and_not_asked, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, asking(endpoint_era, &[FORM])).await;
    let answer = harness.call("ask", "{}").await;
    match endpoint_era {
        Era::Legacy => assert_eq!(told_by(&answer)["answers"], json!([value(CANCEL)])),
        Era::Modern => assert!(answer.is_error(), "{}", answer.text()),
    }
    assert!(!answer.text().contains("runner"), "nothing of the question is shown: {}", answer.text());
    let call = endpoint.arrived("tools/call", 0).await;
    assert_eq!(declared(&endpoint, &call), json!({}));
    assert!(harness.lines().iter().all(|line| line["method"].is_null()), "{:?}", harness.lines());
    assert_eq!(endpoint.requests_of("tools/call").len(), 1);
});

four_eras!(sampling_and_roots_are_refused_although_the_harness_could, |harness_era, endpoint_era| async {
    for question in [SAMPLE, ROOTS] {
        let (mut harness, endpoint) =
            opened_with(harness_era, asking(endpoint_era, &[question]), ALL, &[]).await;
        let answer = harness.call("ask", "{}").await;
        match endpoint_era {
            Era::Legacy => assert_eq!(told_by(&answer)["answers"][0]["code"], json!(-32601)),
            Era::Modern => assert!(answer.is_error(), "{}", answer.text()),
        }
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{}}}));
        assert!(harness.lines().iter().all(|line| line["method"].is_null()), "{:?}", harness.lines());
    }
});

four_eras!(sampling_and_roots_pass_where_the_user_allows_them, |harness_era, endpoint_era| async {
    for (question, reply, flag) in [(SAMPLE, SAMPLED, "--allow-sampling"), (ROOTS, ROOTED, "--allow-roots")] {
        let endpoint = asking(endpoint_era, &[question]);
        let (mut harness, endpoint) = opened_with(harness_era, endpoint, ALL, &[flag]).await;
        let (questions, answer) = Asker::tool(harness_era).converse(&mut harness, &[reply]).await;
        assert_eq!(questions[0]["method"], question.0);
        assert_eq!(questions[0]["params"], value(question.1));
        assert_eq!(told_by(&answer)["answers"], json!([value(reply)]));
        let call = endpoint.arrived("tools/call", 0).await;
        let declared = declared(&endpoint, &call);
        assert_eq!(declared.get("sampling").is_some(), flag == "--allow-sampling", "{declared}");
        assert_eq!(declared.get("roots").is_some(), flag == "--allow-roots", "{declared}");
    }
});

four_eras!(leave_for_one_kind_is_none_for_the_other, |harness_era, endpoint_era| async {
    for (question, flag) in [(SAMPLE, "--allow-roots"), (ROOTS, "--allow-sampling")] {
        let endpoint = asking(endpoint_era, &[question]);
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, ALL, &[flag]).await;
        let answer = harness.call("ask", "{}").await;
        match endpoint_era {
            Era::Legacy => assert_eq!(told_by(&answer)["answers"][0]["code"], json!(-32601)),
            Era::Modern => assert!(answer.is_error(), "{}", answer.text()),
        }
    }
});

four_eras!(leave_of_the_user_does_not_make_the_harness_able, |harness_era, endpoint_era| async {
    for question in [SAMPLE, ROOTS] {
        let flags = ["--allow-sampling", "--allow-roots"];
        let endpoint = asking(endpoint_era, &[question]);
        let (mut harness, endpoint) = opened_with(harness_era, endpoint, FORMS, &flags).await;
        let answer = harness.call("ask", "{}").await;
        match endpoint_era {
            Era::Legacy => assert_eq!(told_by(&answer)["answers"][0]["code"], json!(-32601)),
            Era::Modern => assert!(answer.is_error(), "{}", answer.text()),
        }
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{}}}));
    }
});

four_eras!(a_question_of_an_unknown_kind_is_refused, |harness_era, endpoint_era| async {
    let endpoint = asking(endpoint_era, &[("shell/run", r#"{"line":"rm"}"#)]);
    let flags = ["--allow-sampling", "--allow-roots"];
    let (mut harness, _endpoint) = opened_with(harness_era, endpoint, ALL, &flags).await;
    let answer = harness.call("ask", "{}").await;
    match endpoint_era {
        Era::Legacy => assert_eq!(told_by(&answer)["answers"][0]["code"], json!(-32601)),
        Era::Modern => assert!(answer.is_error(), "{}", answer.text()),
    }
    assert!(harness.lines().iter().all(|line| line["method"].is_null()), "{:?}", harness.lines());
});

#[tokio::test]
async fn a_legacy_endpoint_that_pings_during_a_call_is_answered() {
    for harness_era in crate::opened::BOTH {
        let endpoint = asking(Era::Legacy, &[("ping", "{}")]);
        let (mut harness, _endpoint) = opened(harness_era, endpoint).await;
        assert_eq!(told_by(&harness.call("ask", "{}").await)["answers"], json!([{}]));
    }
}

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// A round trip through the endpoint: what was sent before it has arrived.
async fn round_trip(harness: &mut Harness) {
    assert!(!harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await.is_error());
}

#[tokio::test]
async fn a_change_of_the_roots_is_told_to_a_legacy_endpoint_that_may_know_them() {
    let endpoint = Endpoint::legacy();
    let (mut harness, endpoint) = opened_with(Era::Legacy, endpoint, ALL, &["--allow-roots"]).await;
    round_trip(&mut harness).await;
    let initialize = endpoint.arrived("initialize", 0).await;
    assert_eq!(initialize.param("capabilities")["roots"], json!({"listChanged":true}), "so it is promised");
    harness.notify(ROOTS_CHANGED, "{}").await;
    endpoint.arrived(ROOTS_CHANGED, 0).await;
}

#[tokio::test]
async fn a_change_of_the_roots_is_kept_from_an_endpoint_that_may_not_know_them() {
    let (mut harness, endpoint) = opened_with(Era::Legacy, Endpoint::legacy(), ALL, &[]).await;
    harness.notify(ROOTS_CHANGED, "{}").await;
    round_trip(&mut harness).await;
    assert!(endpoint.requests_of(ROOTS_CHANGED).is_empty());
}
