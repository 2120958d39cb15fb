//! Questions that need care: states that fit one call alone, rounds without end, calls given up meanwhile.

use serde_json::{Value, json};

use crate::{
    asking::{ACCEPT, Asker, CANCEL, FORM, asking, told_by},
    opened::{BOTH, FORMS, assert_own, code, leave, opened_with, posted},
    support::{Endpoint, Era, Harness, Recorded, Reply},
};

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const QUESTION: &str = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;

/// A modern harness that was asked something by a legacy endpoint.
async fn asked_across() -> (Harness, Endpoint, Value) {
    let (mut harness, endpoint) = opened_with(Era::Modern, asking(Era::Legacy, &[FORM]), FORMS, &[]).await;
    let ask = Asker::tool(Era::Modern);
    let id = ask.start(&mut harness).await;
    let asked = ask.question(&mut harness, id).await;
    assert!(asked.state().as_str().unwrap().len() >= 16, "nobody can guess it");
    (harness, endpoint, asked.state().clone())
}

async fn retry(harness: &mut Harness, members: &str, state: &Value) -> crate::support::Answer {
    let params = format!(r#"{{{members},"requestState":{state},"inputResponses":{{"question":{ACCEPT}}}}}"#);
    harness.ask("tools/call", &params).await
}

const CALL: &str = r#""name":"ask","arguments":{}"#;

#[tokio::test]
async fn a_state_minted_here_is_good_once() {
    let (mut harness, endpoint, state) = asked_across().await;
    assert_eq!(told_by(&retry(&mut harness, CALL, &state).await)["answers"], json!([value(ACCEPT)]));
    assert_eq!(code(&retry(&mut harness, CALL, &state).await), -32602);
    assert_eq!(endpoint.requests_of("tools/call").len(), 1, "a retry is no second call");
}

#[tokio::test]
async fn a_state_minted_here_is_good_for_the_same_arguments_alone() {
    for members in [r#""name":"ask","arguments":{"who":"ann"}"#, r#""name":"echo","arguments":{}"#] {
        let (mut harness, endpoint, state) = asked_across().await;
        assert_eq!(code(&retry(&mut harness, members, &state).await), -32602, "{members}");
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_state_minted_here_is_good_for_the_same_method_alone() {
    let (mut harness, endpoint, state) = asked_across().await;
    let params =
        format!(r#"{{"name":"greet","requestState":{state},"inputResponses":{{"question":{ACCEPT}}}}}"#);
    assert_eq!(code(&harness.ask("prompts/get", &params).await), -32602);
    assert!(endpoint.requests_of("prompts/get").is_empty());
}

#[tokio::test]
async fn a_state_that_was_not_minted_here_is_refused() {
    let (mut harness, endpoint, _state) = asked_across().await;
    for state in [r#""""#, r#""x""#, r#""00000000000000000000000000000000""#] {
        assert_eq!(code(&retry(&mut harness, CALL, &value(state)).await), -32602, "{state}");
    }
    assert_eq!(endpoint.requests_of("tools/call").len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_missing_from_the_retry_is_a_cancel() {
    let (mut harness, _endpoint, state) = asked_across().await;
    let answer = harness.ask("tools/call", &format!(r#"{{{CALL},"requestState":{state}}}"#)).await;
    assert_eq!(told_by(&answer)["answers"], json!([value(CANCEL)]));
}

#[tokio::test]
async fn a_harness_that_leaves_while_its_user_is_asked_has_cancelled() {
    let (mut harness, endpoint, _state) = asked_across().await;
    leave(&mut harness).await;
    let call = endpoint.arrived("tools/call", 0).await;
    let question = json!(format!("q0-{}", call.json["id"]));
    assert_eq!(posted(&endpoint, &question).await["result"], value(CANCEL));
}

#[tokio::test]
async fn a_legacy_harness_that_leaves_while_its_user_is_asked_is_seen_out() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) =
            opened_with(Era::Legacy, asking(endpoint_era, &[FORM]), FORMS, &[]).await;
        let ask = Asker::tool(Era::Legacy);
        let id = ask.start(&mut harness).await;
        ask.question(&mut harness, id).await;
        leave(&mut harness).await;
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
    }
}

#[tokio::test]
async fn a_call_cancelled_while_the_user_is_asked_withdraws_the_question() {
    for endpoint_era in BOTH {
        let (mut harness, endpoint) =
            opened_with(Era::Legacy, asking(endpoint_era, &[FORM]), FORMS, &[]).await;
        let ask = Asker::tool(Era::Legacy);
        let id = ask.start(&mut harness).await;
        let asked = ask.question(&mut harness, id).await;
        harness.cancel(id).await;
        let withdrawn = harness.next_notification("notifications/cancelled").await;
        assert_eq!(withdrawn["params"]["requestId"].to_string(), asked.request_id());
        if endpoint_era == Era::Legacy {
            let told = endpoint.arrived("notifications/cancelled", 0).await;
            assert_eq!(*told.param("requestId"), endpoint.arrived("tools/call", 0).await.json["id"]);
        }
        // an answer that crosses with the withdrawal is nobody's any more
        harness.reply(asked.request_id(), ACCEPT).await;
        assert!(!harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await.is_error());
        assert_eq!(endpoint.requests_of("tools/call").len(), 1);
    }
}

fn asks_for_ever(call: &Recorded) -> Reply {
    let state = call.param("requestState").as_str().unwrap_or_default().len();
    Reply::result(format!(
        r#"{{"resultType":"input_required","requestState":"{}","inputRequests":{{"q":{QUESTION}}}}}"#,
        "x".repeat(state + 1)
    ))
}

#[tokio::test]
async fn a_legacy_harness_is_asked_ten_times_in_one_call_at_most() {
    let endpoint = Endpoint::modern().on("tools/call", asks_for_ever);
    let (mut harness, _endpoint) = opened_with(Era::Legacy, endpoint, FORMS, &[]).await;
    let (questions, answer) = Asker::tool(Era::Legacy).converse(&mut harness, &[ACCEPT; 10]).await;
    assert_eq!(questions.len(), 10);
    assert_own(&answer);
}

#[tokio::test]
async fn several_questions_of_one_round_are_all_asked_and_answered_together() {
    let endpoint = Endpoint::modern().on("tools/call", |call| {
        let responses = call.param("inputResponses");
        if responses.is_null() {
            return Reply::result(format!(
                r#"{{"resultType":"input_required","requestState":"","inputRequests":{{"a\u00fc":{QUESTION},"":{QUESTION},"b":{QUESTION}}}}}"#
            ));
        }
        assert_eq!(call.param("requestState"), "", "an empty state is a state");
        Reply::text(&responses.to_string())
    });
    let (mut harness, _endpoint) = opened_with(Era::Legacy, endpoint, FORMS, &[]).await;
    let id = harness.start_call("ask", "{}").await;
    for _ in 0..3 {
        let request = harness.next_request().await;
        harness.reply(&request["id"].to_string(), ACCEPT).await;
    }
    let answers = value(&crate::opened::text(&harness.answer(id).await));
    let accepted = value(ACCEPT);
    assert_eq!(answers, json!({"aü":accepted,"":accepted,"b":accepted}));
}

#[tokio::test]
async fn what_a_modern_endpoint_asks_a_modern_harness_passes_untouched() {
    const ASKED: &str = r#"{"resultType":"input_required","inputRequests":{"q \u00e9":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},"x":1e3}}},"requestState":"\u0073-1.0","y":[1.0]}"#;
    let endpoint = Endpoint::modern().on("tools/call", |call| match call.param("requestState").as_str() {
        None => Reply::result(ASKED),
        Some(_) => Reply::text("done"),
    });
    let (mut harness, endpoint) = opened_with(Era::Modern, endpoint, FORMS, &[]).await;
    assert_eq!(harness.call("ask", "{}").await.result_raw(), ASKED);
    let retry = [
        r#""inputResponses":{"q \u00e9":{"action":"accept","content":{"n":1.0}}}"#,
        r#""requestState":"\u0073-1.0""#,
    ];
    harness.ask("tools/call", &format!("{{{CALL},{}}}", retry.join(","))).await;
    let sent = String::from_utf8(endpoint.arrived("tools/call", 1).await.body.to_vec()).unwrap();
    for member in retry {
        assert!(sent.contains(member), "{sent}");
    }
}

#[tokio::test]
async fn a_state_without_a_question_is_sent_back_for_a_legacy_harness() {
    let endpoint = Endpoint::modern().on("tools/call", |call| match call.param("requestState").as_str() {
        None => Reply::result(r#"{"resultType":"input_required","requestState":"later"}"#),
        Some(state) => Reply::text(state),
    });
    let (mut harness, endpoint) = opened_with(Era::Legacy, endpoint, FORMS, &[]).await;
    assert_eq!(crate::opened::text(&harness.call("ask", "{}").await), "later");
    assert!(endpoint.arrived("tools/call", 1).await.param("inputResponses").is_null());
}

#[tokio::test]
async fn a_question_without_a_state_is_answered_without_one() {
    let endpoint = Endpoint::modern().on("tools/call", |call| match call.param("inputResponses") {
        Value::Null => {
            Reply::result(format!(r#"{{"resultType":"input_required","inputRequests":{{"q":{QUESTION}}}}}"#))
        }
        _ => Reply::text("done"),
    });
    let (mut harness, endpoint) = opened_with(Era::Legacy, endpoint, FORMS, &[]).await;
    let (_, answer) = Asker::tool(Era::Legacy).converse(&mut harness, &[ACCEPT]).await;
    assert_eq!(crate::opened::text(&answer), "done");
    assert_eq!(endpoint.arrived("tools/call", 1).await.json["params"].get("requestState"), None);
}

#[tokio::test]
async fn an_endpoint_that_wants_input_and_does_not_say_which_gets_none() {
    for harness_era in BOTH {
        let empty = |_: &Recorded| Reply::result(r#"{"resultType":"input_required"}"#);
        let endpoint = Endpoint::modern().on("tools/call", empty);
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
        assert!(harness.call("ask", "{}").await.is_error());
    }
}

#[tokio::test]
async fn only_calls_prompts_and_reads_may_ask() {
    for harness_era in BOTH {
        let asking = |_: &Recorded| {
            Reply::result(format!(
                r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"q":{QUESTION}}}}}"#
            ))
        };
        let endpoint = Endpoint::modern().on("resources/list", asking).on("completion/complete", asking);
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
        for method in ["resources/list", "completion/complete"] {
            assert!(harness.ask(method, "{}").await.is_error(), "{method}");
        }
    }
}
