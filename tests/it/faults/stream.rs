//! Event streams that are wrong, or right in an unusual way.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::{AWAKE, Scene, fault, faulty};
use crate::support::{Endpoint, Era, Harness, Recorded, Reply, Script, event_text, four_eras, result_text};

const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
const LATER: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"later"}]}"#;

fault!(a_stream_cut_in_an_event_is_one_error, ["connection_lost"], None, |request| {
    let answer = result_text(&request.id_raw(), DONE);
    Reply::sse(Script::new().raw(format!("data: {}", &answer[..30])).cut())
});
fault!(a_stream_cut_before_its_answer_is_one_error, ["connection_lost"], None, |_| {
    Reply::sse(Script::new().comment("working").cut())
});
fault!(a_stream_that_ends_at_once_is_one_error, ["no_answer"], None, |_| Reply::sse(Script::new()));
fault!(a_stream_that_ends_without_an_answer_is_one_error, ["no_answer"], None, |_| {
    let params = r#"{"progressToken":"nobody's","progress":1}"#;
    Reply::sse(Script::new().comment("working").notification("notifications/progress", params))
});
fault!(a_stream_that_answers_another_request_is_one_error, ["wrong_id"], None, |_| {
    Reply::sse(Script::new().event(result_text("\"somebody else's\"", DONE)))
});
fault!(a_json_body_that_answers_another_request_is_one_error, ["wrong_id"], None, |_| {
    Reply::full(200, "application/json", result_text("\"somebody else's\"", DONE))
});
fault!(an_id_of_another_type_is_another_id, ["wrong_id"], None, |request| {
    let id = request.id_raw();
    let other = if id.starts_with('"') { id.replace('"', "") } else { format!("\"{id}\"") };
    Reply::full(200, "application/json", result_text(&other, DONE))
});
fault!(an_answer_without_an_id_is_one_error, ["wrong_id", "malformed_answer"], None, |_| {
    Reply::sse(Script::new().event(result_text("null", DONE)))
});
fault!(an_event_that_is_no_json_is_one_error, ["malformed_answer"], None, |request| {
    Reply::sse(Script::new().event("{\"jsonrpc\":").event(result_text(&request.id_raw(), DONE)))
});
fault!(an_array_on_a_stream_is_one_error, ["malformed_answer"], None, |request| {
    Reply::sse(Script::new().event(format!("[{}]", result_text(&request.id_raw(), DONE))))
});

/// A request of the endpoint to the harness has no place on a stream of the modern era.
async fn a_request_is_a_violation(harness_era: Era, method: &'static str, params: &'static str) {
    let fault = move |_: &Recorded| Reply::sse(Script::new().request("\"q-1\"", method, params).result(DONE));
    let mut scene = Scene::open(harness_era, Era::Modern, &[], fault).await;
    scene.fails(&["protocol_violation"], "{}").await;
    assert_eq!(scene.broken_calls(), 1);
    let asked = scene.harness.lines().into_iter().filter(|line| line["method"] == method).count();
    assert_eq!(asked, 0, "the request must not reach the harness");
    scene.unaffected().await;
}

const QUESTION: &str = r#"{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}"#;

#[tokio::test]
async fn a_question_on_a_modern_stream_is_a_violation_for_a_modern_harness() {
    a_request_is_a_violation(Era::Modern, "elicitation/create", QUESTION).await;
}

#[tokio::test]
async fn a_question_on_a_modern_stream_is_a_violation_for_a_legacy_harness() {
    a_request_is_a_violation(Era::Legacy, "elicitation/create", QUESTION).await;
}

#[tokio::test]
async fn sampling_on_a_modern_stream_is_a_violation() {
    a_request_is_a_violation(Era::Legacy, "sampling/createMessage", r#"{"messages":[],"maxTokens":1}"#).await;
}

#[tokio::test]
async fn a_ping_on_a_modern_stream_is_a_violation() {
    a_request_is_a_violation(Era::Modern, "ping", "{}").await;
}

four_eras!(of_two_answers_on_a_stream_one_passes, |harness_era, endpoint_era| async {
    let fault = |_: &Recorded| Reply::sse(Script::new().result(DONE).result(LATER));
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    let answer = scene.harness.call("broken", "{}").await;
    assert_eq!(answer.result()["content"][0]["text"], "done");
    assert_eq!(scene.broken_calls(), 1);
    scene.unaffected().await;
});

four_eras!(a_stream_that_stays_open_after_its_answer_is_let_go, |harness_era, endpoint_era| async {
    let fault = |_: &Recorded| Reply::sse(Script::new().result(DONE).hang());
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    let answer = scene.harness.call("broken", "{}").await;
    assert_eq!(answer.result()["content"][0]["text"], "done");
    let order = scene.endpoint.arrived("tools/call", 1).await.order;
    scene.endpoint.client_closed(order).await;
    scene.unaffected().await;
});

/// An answer with the id of a call in flight reaches neither that call nor this one.
async fn somebody_elses(harness_era: Era, endpoint_era: Era, as_event: bool) {
    let sleeping: Arc<Mutex<String>> = Arc::default();
    let held = sleeping.clone();
    let fault = move |_: &Recorded| {
        let answer = result_text(&held.lock().unwrap(), DONE);
        if as_event {
            Reply::sse(Script::new().event(answer))
        } else {
            Reply::full(200, "application/json", answer)
        }
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    *sleeping.lock().unwrap() = scene.endpoint.arrived("tools/call", 0).await.id_raw();
    scene.fails(&["wrong_id"], "{}").await;
    assert_eq!(scene.broken_calls(), 1);
    scene.unaffected().await;
}

four_eras!(a_body_with_the_id_of_a_call_in_flight_answers_nobody, |harness_era, endpoint_era| async {
    somebody_elses(harness_era, endpoint_era, false).await;
});

four_eras!(an_event_with_the_id_of_a_call_in_flight_answers_nobody, |harness_era, endpoint_era| async {
    somebody_elses(harness_era, endpoint_era, true).await;
});

four_eras!(an_unusual_but_legal_stream_is_read, |harness_era, endpoint_era| async {
    let fault = |request: &Recorded| {
        let id = request.id_raw();
        let answer = result_text(&id, DONE);
        let split = answer.replacen(',', ",\ndata:", 1);
        let text = match request.param("arguments")["n"].as_u64().unwrap() {
            0 => format!("\u{feff}data: {answer}\n\n"),
            1 => format!("event: message\r\ndata: {answer}\r\n\r\n"),
            2 => format!("data:{answer}\r\r"),
            3 => format!("event:ping\ndata:x\n\n:comment\n\nevent: other\ndata: {{}}\n\ndata: {answer}\n\n"),
            4 => format!("nonsense\nunknown: field\nid: 7\nretry: soon\ndata: {answer}\n\n"),
            5 => format!("data: {split}\n\n"),
            6 => format!("\n\n\r\n\r\r:\n\ndata: {answer}\n\n"),
            _ => format!("id\nevent\ndata: {answer}\n\n"),
        };
        Reply::full(200, "text/event-stream", text)
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for n in 0..8 {
        let answer = scene.harness.call("broken", &format!(r#"{{"n":{n}}}"#)).await;
        assert_eq!(answer.result()["content"][0]["text"], "done", "variant {n}: {}", answer.text());
    }
    scene.unaffected().await;
});

/// An event with an id invites a legacy client to come back for the rest, by GET and never by sending again.
#[tokio::test]
async fn a_stream_with_ids_that_cannot_be_taken_up_again_is_one_error() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let gate = Arc::new(Notify::new());
        let fault = |_: &Recorded| Reply::sse(Script::new().retry(1).id("event-1"));
        let builder = faulty(Era::Legacy, &gate, fault).refuse_get(405);
        let mut scene = Scene::on(harness_era, builder, gate, &[]).await;
        scene.fails(&["no_answer", "connection_lost"], "{}").await;
        assert_eq!(scene.broken_calls(), 1);
        scene.unaffected().await;
    }
}

/// What `id:` and `retry:` mean in the legacy era, they do not mean in the modern one.
#[tokio::test]
async fn a_modern_stream_with_ids_is_not_taken_up_again() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let fault = |_: &Recorded| Reply::sse(Script::new().retry(1).id("event-1"));
        let mut scene = Scene::open(harness_era, Era::Modern, &[], fault).await;
        scene.fails(&["no_answer", "connection_lost"], "{}").await;
        assert_eq!(scene.endpoint.requests_of("GET").len(), 0);
        scene.unaffected().await;
    }
}

four_eras!(every_call_of_many_on_broken_streams_gets_its_one_error, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era)
        .on("tools/call", |request| match request.param("arguments")["n"].as_u64().unwrap() % 4 {
            0 => Reply::close(),
            1 => Reply::sse(Script::new().comment("a").cut()),
            2 => Reply::sse(Script::new()),
            _ => Reply::result(AWAKE),
        })
        .start()
        .await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let mut calls = Vec::new();
    for n in 0..40 {
        calls.push((n, harness.start_call("echo", &format!(r#"{{"n":{n}}}"#)).await));
    }
    for (n, id) in calls {
        assert_eq!(harness.answer(id).await.is_error(), n % 4 != 3, "call {n}");
    }
    assert_eq!(endpoint.requests_of("tools/call").len(), 40);
});

async fn holds_up_nobody(harness_era: Era, endpoint_era: Era) {
    let endless = |request: &Recorded| {
        let piece = match request.param("arguments")["of"].as_str().unwrap() {
            "comments" => ": x\n\n".to_owned(),
            "empty events" => "data:\n\n".to_owned(),
            "other events" => "event: ping\ndata: {}\n\n".to_owned(),
            "empty lines" => "\n".to_owned(),
            _ => event_text(
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"?","progress":1}}"#,
            ),
        };
        Reply::endless("text/event-stream", piece.repeat(20_000 / piece.len()))
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], endless).await;
    for (n, of) in ["comments", "empty events", "other events", "empty lines", "progress"].iter().enumerate()
    {
        let id = scene.harness.start_call("broken", &format!(r#"{{"of":"{of}"}}"#)).await;
        let order = scene.endpoint.arrived("tools/call", 1 + 3 * n).await.order;
        for _ in 0..2 {
            let answer = scene.harness.call("echo", r#"{"text":"quick"}"#).await;
            assert_eq!(answer.result()["content"][0]["text"], "quick", "beside endless {of}");
        }
        scene.harness.cancel(id).await;
        scene.endpoint.client_closed(order).await;
    }
    scene.unaffected().await;
}

#[tokio::test]
async fn a_modern_stream_without_end_holds_up_nobody() {
    holds_up_nobody(Era::Legacy, Era::Modern).await;
}

#[tokio::test]
async fn a_legacy_stream_without_end_holds_up_nobody() {
    holds_up_nobody(Era::Modern, Era::Legacy).await;
}
