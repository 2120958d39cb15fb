//! The endpoint asks the user, whatever the two eras are.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    asking::{
        ACCEPT, Asker, CANCEL, DECLINE, FORM, Question, SECOND_FORM, as_asked, asking, asking_by, told_by,
    },
    opened::{BOTH, FORMS, declared, opened, opened_with, text},
    support::{Endpoint, EndpointBuilder, Era, Harness, Reply, Script, four_eras},
};

const URL: Question = (
    "elicitation/create",
    r#"{"mode":"url","message":"Sign here","url":"https://pay.example/?a=b&c=%20","elicitationId":"e-1"}"#,
);
const MODERN_URL: Question =
    ("elicitation/create", r#"{"mode":"url","message":"Sign here","url":"https://pay.example/?a=b&c=%20"}"#);
const URLS: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

four_eras!(a_question_reaches_the_user_and_the_answer_the_endpoint, |harness_era, endpoint_era| async {
    for reply in
        [ACCEPT, DECLINE, CANCEL, r#"{"action":"accept","content":{"allow":false},"_meta":{"x":1.0}}"#]
    {
        let (mut harness, _endpoint) =
            opened_with(harness_era, asking(endpoint_era, &[FORM]), FORMS, &[]).await;
        let (questions, answer) = Asker::tool(harness_era).converse(&mut harness, &[reply]).await;
        assert_eq!(questions, [as_asked(FORM)], "the question as it was put");
        assert_eq!(told_by(&answer)["answers"], json!([value(reply)]));
        assert_eq!(answer.result().get("resultType").is_some(), harness_era == Era::Modern);
    }
});

four_eras!(questions_may_follow_one_another, |harness_era, endpoint_era| async {
    let questions = [FORM, SECOND_FORM, FORM];
    let (mut harness, endpoint) =
        opened_with(harness_era, asking(endpoint_era, &questions), FORMS, &[]).await;
    let replies = [ACCEPT, r#"{"action":"accept","content":{"why":"ü"}}"#, DECLINE];
    let (seen, answer) = Asker::tool(harness_era).converse(&mut harness, &replies).await;
    assert_eq!(seen, questions.map(as_asked));
    assert_eq!(told_by(&answer)["answers"], Value::from(replies.map(value).to_vec()));
    let calls = endpoint.requests_of("tools/call");
    assert_eq!(calls.len(), if endpoint_era == Era::Modern { 4 } else { 1 });
    for call in &calls {
        assert_eq!(call.subject(), "ask");
        assert_eq!(*call.param("arguments"), json!({}));
    }
    if endpoint_era == Era::Modern {
        let ids: std::collections::HashSet<_> = calls.iter().map(|call| call.id_raw()).collect();
        assert_eq!(ids.len(), 4, "each round is a request of its own");
        let tokens = calls.iter().map(|call| call.param("_meta")["progressToken"].to_string());
        assert_eq!(
            tokens.collect::<std::collections::HashSet<_>>().len(),
            4,
            "with a progress token of its own"
        );
    }
});

four_eras!(two_calls_that_ask_at_once_are_not_mixed_up, |harness_era, endpoint_era| async {
    let (mut harness, _endpoint) = opened_with(harness_era, asking(endpoint_era, &[FORM]), FORMS, &[]).await;
    let of = |members| Asker { members, ..Asker::tool(harness_era) };
    let ann = of(r#""name":"ask","arguments":{"who":"ann"}"#);
    let bob = of(r#""name":"ask","arguments":{"who":"bob"}"#);
    let ann_id = ann.start(&mut harness).await;
    let ann_asked = ann.question(&mut harness, ann_id).await;
    let bob_id = bob.start(&mut harness).await;
    let bob_asked = bob.question(&mut harness, bob_id).await;
    // the second one is answered first
    let bob_id = bob.reply(&mut harness, bob_id, &bob_asked, DECLINE).await;
    assert_eq!(told_by(&harness.answer(bob_id).await), json!({"who":"bob","answers":[value(DECLINE)]}));
    let ann_id = ann.reply(&mut harness, ann_id, &ann_asked, ACCEPT).await;
    assert_eq!(told_by(&harness.answer(ann_id).await), json!({"who":"ann","answers":[value(ACCEPT)]}));
});

four_eras!(other_calls_go_on_while_a_person_is_asked, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened_with(harness_era, asking(endpoint_era, &[FORM]), FORMS, &[]).await;
    let ask = Asker::tool(harness_era);
    let id = ask.start(&mut harness).await;
    let asked = ask.question(&mut harness, id).await;
    assert!(!harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await.is_error());
    let id = ask.reply(&mut harness, id, &asked, ACCEPT).await;
    assert_eq!(told_by(&harness.answer(id).await)["answers"], json!([value(ACCEPT)]));
    assert_eq!(endpoint.requests_of("resources/read").len(), 1);
});

four_eras!(a_prompt_and_a_resource_may_ask_too, |harness_era, endpoint_era| async {
    let prompt = Asker { era: harness_era, method: "prompts/get", members: r#""name":"greet""# };
    let resource = Asker { era: harness_era, method: "resources/read", members: r#""uri":"memo://one""# };
    for ask in [prompt, resource] {
        let endpoint = asking_by(endpoint_era, ask.method, &[FORM]);
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
        let (questions, answer) = ask.converse(&mut harness, &[ACCEPT]).await;
        assert_eq!(questions, [as_asked(FORM)], "{}", ask.method);
        assert_eq!(told_by(&answer)["answers"], json!([value(ACCEPT)]), "{}", ask.method);
    }
});

four_eras!(the_user_may_be_sent_to_a_url, |harness_era, endpoint_era| async {
    let question = if endpoint_era == Era::Modern { MODERN_URL } else { URL };
    let (mut harness, endpoint) =
        opened_with(harness_era, asking(endpoint_era, &[question]), URLS, &[]).await;
    let (questions, answer) =
        Asker::tool(harness_era).converse(&mut harness, &[r#"{"action":"accept"}"#]).await;
    let mut params = questions[0]["params"].clone();
    let id = params.as_object_mut().unwrap().remove("elicitationId");
    assert_eq!(params, value(MODERN_URL.1));
    match (harness_era, endpoint_era) {
        (Era::Modern, _) => assert_eq!(id, None, "the modern era has no such member"),
        (Era::Legacy, Era::Legacy) => assert_eq!(id, Some(json!("e-1"))),
        (Era::Legacy, Era::Modern) => assert!(!id.unwrap().as_str().unwrap().is_empty()),
    }
    assert_eq!(told_by(&answer)["answers"], json!([{"action":"accept"}]));
    let call = endpoint.arrived("tools/call", 0).await;
    assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{},"url":{}}}));
});

four_eras!(a_harness_with_forms_alone_is_not_sent_to_a_url, |harness_era, endpoint_era| async {
    let question = if endpoint_era == Era::Modern { MODERN_URL } else { URL };
    let (mut harness, endpoint) =
        opened_with(harness_era, asking(endpoint_era, &[question]), FORMS, &[]).await;
    let answer = harness.call("ask", "{}").await;
    match endpoint_era {
        Era::Modern => assert!(answer.is_error(), "{}", answer.text()),
        Era::Legacy => assert!(!answer.text().contains("pay.example"), "{}", answer.text()),
    }
    let call = endpoint.arrived("tools/call", 0).await;
    assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{}}}));
    assert!(!harness.lines().iter().any(|line| line["method"] == "elicitation/create"));
});

/// URL mode came with 2025-11-25.
#[tokio::test]
async fn a_harness_of_an_older_revision_is_never_offered_for_urls() {
    for (endpoint_era, version) in
        BOTH.into_iter().flat_map(|era| ["2025-06-18", "2025-03-26"].map(|v| (era, v)))
    {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.initialize(version, URLS).await;
        harness.call("echo", r#"{"text":"hi"}"#).await;
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(declared(&endpoint, &call)["elicitation"].get("url"), None, "{version}");
    }
}

four_eras!(an_empty_elicitation_capability_means_forms, |harness_era, endpoint_era| async {
    let endpoint = asking(endpoint_era, &[FORM]);
    let (mut harness, endpoint) = opened_with(harness_era, endpoint, r#"{"elicitation":{}}"#, &[]).await;
    let (_, answer) = Asker::tool(harness_era).converse(&mut harness, &[ACCEPT]).await;
    assert_eq!(told_by(&answer)["answers"], json!([value(ACCEPT)]));
    let call = endpoint.arrived("tools/call", 0).await;
    let elicitation = &declared(&endpoint, &call)["elicitation"];
    assert!(*elicitation == json!({}) || *elicitation == json!({"form":{}}), "{elicitation}");
});

/// MCP 2025-11-25 has an error for "the user has to open a URL first"; the modern era has a question for it.
const URL_FIRST: &str = r#"{"code":-32042,"message":"open this first","data":{"elicitations":[{"mode":"url","message":"Sign here","url":"https://pay.example/","elicitationId":"e-1"}]}}"#;

#[tokio::test]
async fn an_error_that_wants_a_url_opened_becomes_a_question_for_a_modern_harness() {
    let endpoint = Endpoint::legacy().on("tools/call", |_| Reply::error(URL_FIRST));
    let (mut harness, _endpoint) = opened_with(Era::Modern, endpoint, URLS, &[]).await;
    let result = harness.call("ask", "{}").await.result();
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests: Vec<_> = result["inputRequests"].as_object().unwrap().values().cloned().collect();
    let params = json!({"mode":"url","message":"Sign here","url":"https://pay.example/"});
    assert_eq!(requests, [json!({"method":"elicitation/create","params":params})]);
}

#[tokio::test]
async fn an_error_that_wants_a_url_opened_names_the_capability_a_modern_harness_lacks() {
    let endpoint = Endpoint::legacy().on("tools/call", |_| Reply::error(URL_FIRST));
    let (mut harness, _endpoint) = opened_with(Era::Modern, endpoint, FORMS, &[]).await;
    let error = harness.call("ask", "{}").await.error();
    assert_eq!(error["code"], json!(-32021), "{error}");
    assert_eq!(error["data"]["requiredCapabilities"], json!({"elicitation":{"url":{}}}));
}

#[tokio::test]
async fn an_error_that_wants_a_url_opened_passes_to_a_legacy_harness() {
    let endpoint = Endpoint::legacy().on("tools/call", |_| Reply::error(URL_FIRST));
    let (mut harness, _endpoint) = opened_with(Era::Legacy, endpoint, URLS, &[]).await;
    assert_eq!(harness.call("ask", "{}").await.error(), value(URL_FIRST));
}

#[tokio::test]
async fn a_legacy_harness_that_answers_with_an_error_has_cancelled() {
    for endpoint_era in BOTH {
        let (mut harness, _endpoint) =
            opened_with(Era::Legacy, asking(endpoint_era, &[FORM]), FORMS, &[]).await;
        let ask = Asker::tool(Era::Legacy);
        let id = ask.start(&mut harness).await;
        let asked = ask.question(&mut harness, id).await;
        harness.reply_error(asked.request_id(), r#"{"code":-32603,"message":"no display"}"#).await;
        assert_eq!(told_by(&harness.answer(id).await)["answers"], json!([value(CANCEL)]));
    }
}

#[tokio::test]
async fn a_legacy_harness_is_asked_nothing_before_it_is_initialized() {
    for endpoint_era in BOTH {
        let endpoint = asking(endpoint_era, &[FORM]).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        let params = format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{FORMS},"clientInfo":{{"name":"x","version":"1"}}}}"#
        );
        harness.ask("initialize", &params).await;
        let ask = Asker::tool(Era::Legacy);
        let id = ask.start(&mut harness).await;
        endpoint.arrived("tools/call", 0).await;
        // the endpoint has been asked something else since, and that answer is here already
        harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
        assert!(harness.lines().iter().all(|line| line["method"].is_null()), "{:?}", harness.lines());
        harness.notify("notifications/initialized", "{}").await;
        let asked = ask.question(&mut harness, id).await;
        ask.reply(&mut harness, id, &asked, ACCEPT).await;
        assert_eq!(told_by(&harness.answer(id).await)["answers"], json!([value(ACCEPT)]));
    }
}

four_eras!(a_call_that_asks_nothing_is_not_changed_by_the_capability, |harness_era, endpoint_era| async {
    let (mut harness, _endpoint) = opened(harness_era, asking(endpoint_era, &[])).await;
    assert_eq!(told_by(&harness.call("ask", "{}").await)["answers"], json!([]));
});

#[tokio::test]
async fn a_harness_that_initializes_with_more_than_its_probe_said_is_asked() {
    for endpoint_era in BOTH {
        let endpoint = asking(endpoint_era, &[FORM]).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.discover("{}").await;
        harness.initialize("2025-11-25", FORMS).await;
        let (questions, answer) = Asker::tool(Era::Legacy).converse(&mut harness, &[ACCEPT]).await;
        assert_eq!(questions, [as_asked(FORM)]);
        assert_eq!(told_by(&answer)["answers"], json!([value(ACCEPT)]));
    }
}

/// A legacy endpoint that asks, waits for the gate, does that, and answers without having been told anything.
fn changing_its_mind(gate: &Arc<Notify>, then: fn(Script) -> Script) -> EndpointBuilder {
    let gate = gate.clone();
    Endpoint::legacy().on("tools/call", move |_| {
        let script = Script::new().request(r#""q""#, FORM.0, FORM.1).wait(&gate);
        Reply::sse(then(script).result(r#"{"content":[{"type":"text","text":"never mind"}]}"#))
    })
}

#[tokio::test]
async fn a_question_that_the_endpoint_takes_back_is_taken_back_from_the_harness() {
    let gate = Arc::new(Notify::new());
    let endpoint = changing_its_mind(&gate, |script| {
        script.notification("notifications/cancelled", r#"{"requestId":"q","reason":"timed out"}"#)
    });
    let (mut harness, _endpoint) = opened_with(Era::Legacy, endpoint, FORMS, &[]).await;
    let ask = Asker::tool(Era::Legacy);
    let id = ask.start(&mut harness).await;
    let asked = ask.question(&mut harness, id).await;
    gate.notify_one();
    let withdrawn = harness.next_notification("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"].to_string(), asked.request_id());
    assert_eq!(text(&harness.answer(id).await), "never mind");
}

#[tokio::test]
async fn progress_goes_on_while_a_person_is_asked() {
    let gate = Arc::new(Notify::new());
    let endpoint = changing_its_mind(&gate, |script| {
        script.notification("notifications/progress", r#"{"progressToken":"p","progress":1}"#).hang()
    });
    let (mut harness, _endpoint) = opened_with(Era::Legacy, endpoint, FORMS, &[]).await;
    let call = r#"{"name":"ask","arguments":{},"_meta":{"progressToken":"p"}}"#;
    let id = harness.request("tools/call", call).await;
    Asker::tool(Era::Legacy).question(&mut harness, id).await;
    gate.notify_one();
    assert_eq!(harness.next_notification("notifications/progress").await["params"]["progress"], 1);
}

#[tokio::test]
async fn an_endpoint_that_answers_without_waiting_for_the_user_is_not_held_up() {
    let gate = Arc::new(Notify::new());
    let (mut harness, _endpoint) =
        opened_with(Era::Legacy, changing_its_mind(&gate, |script| script), FORMS, &[]).await;
    let ask = Asker::tool(Era::Legacy);
    let id = ask.start(&mut harness).await;
    ask.question(&mut harness, id).await;
    gate.notify_one();
    assert_eq!(text(&harness.answer(id).await), "never mind");
}

#[tokio::test]
async fn what_became_of_a_url_is_told_to_a_legacy_harness_alone() {
    let complete = "notifications/elicitation/complete";
    for harness_era in BOTH {
        let endpoint = Endpoint::legacy().on("tools/call", move |_| {
            let script = Script::new().notification(complete, r#"{"elicitationId":"e-1"}"#);
            Reply::sse(script.result(r#"{"content":[]}"#))
        });
        let (mut harness, _endpoint) = opened_with(harness_era, endpoint, URLS, &[]).await;
        assert!(!harness.call("ask", "{}").await.is_error());
        let told: Vec<_> =
            harness.notifications().into_iter().filter(|line| line["method"] == complete).collect();
        assert_eq!(told.len(), usize::from(harness_era == Era::Legacy), "{:?}", harness.lines());
    }
}
