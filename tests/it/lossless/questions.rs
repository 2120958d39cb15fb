//! Questions to the user and the answers to them.

use super::{cases, members, one_line, value, with};
use crate::support::{Endpoint, Era, Harness, Recorded, Reply, Script, four_eras};

const DONE: &str = r#"{"resultType":"complete","content":[]}"#;
const ASKS: &str = r#"{"elicitation":{"form":{}}}"#;

/// An endpoint whose tool asks that question.
fn asking(era: Era, question: String) -> impl Fn(&Recorded) -> Reply + Send + Sync + 'static {
    move |request| match era {
        Era::Legacy => {
            let script = Script::new().request("\"q-1\"", "elicitation/create", &question);
            Reply::sse(script.posted("\"q-1\"", |_| Script::new().result(DONE)))
        }
        Era::Modern if request.param("inputResponses").is_null() => Reply::result(required(&question)),
        Era::Modern => Reply::result(DONE),
    }
}

fn required(question: &str) -> String {
    let asked = format!(r#"{{"q \u0031":{{"method":"elicitation/create","params":{question}}}}}"#);
    format!(
        r#"{{"requestState":"a\/b","x-unknown":1.0,"inputRequests":{asked},"resultType":"input_required"}}"#
    )
}

/// Calls the tool, answers its question, and yields the question as it arrived.
async fn question_and_answer(harness: &mut Harness, era: Era, answer: &str) -> String {
    let params = r#"{"name":"ask","arguments":{}}"#;
    let id = harness.request("tools/call", params).await;
    if era == Era::Legacy {
        let question = harness.next_of("elicitation/create").await;
        harness.reply(&question.id_raw(), answer).await;
        harness.answer(id).await.result();
        return question.member("params").unwrap();
    }
    let result = harness.answer(id).await.result_raw();
    let (requests, state) = (value(&result, "inputRequests"), value(&result, "requestState"));
    let (key, request) = members(&requests).remove(0);
    let retry = format!(r#""inputResponses":{{{key}:{answer}}},"requestState":{state}"#);
    harness.ask("tools/call", &with(params, "", &retry)).await.result();
    value(&request, "params")
}

four_eras!(questions_arrive_as_they_were_asked, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, ASKS).await.result();
    for (case, text) in cases("elicitation") {
        endpoint.set("tools/call", asking(endpoint_era, text.clone()));
        let received = question_and_answer(&mut harness, harness_era, r#"{"action":"decline"}"#).await;
        assert_eq!(received, one_line(&text), "{case}");
    }
});

#[tokio::test]
async fn a_result_that_asks_arrives_as_it_was_sent_in_the_modern_era() {
    let endpoint = Endpoint::modern().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(Era::Modern, ASKS).await.result();
    for (case, text) in cases("elicitation") {
        endpoint.set("tools/call", asking(Era::Modern, text.clone()));
        let received = harness.call("ask", "{}").await.result_raw();
        assert_eq!(received, one_line(&required(&text)), "{case}");
    }
}

four_eras!(answers_arrive_as_they_were_given, |harness_era, endpoint_era| async {
    let question = r#"{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}"#;
    let endpoint =
        Endpoint::era(endpoint_era).on("tools/call", asking(endpoint_era, question.to_owned())).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, ASKS).await.result();
    for (case, text) in cases("answer") {
        question_and_answer(&mut harness, harness_era, &text).await;
        let carrier = endpoint.requests().into_iter().rfind(|request| match endpoint_era {
            Era::Legacy => request.is_response(),
            Era::Modern => !request.param("inputResponses").is_null(),
        });
        let body = String::from_utf8(carrier.unwrap().body.to_vec()).unwrap();
        let arrived = match endpoint_era {
            Era::Legacy => value(&body, "result"),
            Era::Modern => {
                let params = value(&body, "params");
                assert_eq!(value(&params, "requestState"), r#""a\/b""#, "{case}");
                let (key, answer) = members(&value(&params, "inputResponses")).remove(0);
                assert_eq!(serde_json::from_str::<String>(&key).unwrap(), "q 1", "{case}");
                answer
            }
        };
        assert_eq!(arrived, one_line(&text), "{case}");
    }
});
