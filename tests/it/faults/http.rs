//! Answers that are wrong as HTTP, or right in an unusual way.

use std::time::Duration;

use super::{Scene, fault, one_error};
use crate::support::{Era, Recorded, Reply, error_text, event_text, four_eras, result_text};

const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;

fault!(a_connection_closed_after_the_request_is_one_error, ["connection_lost"], None, |_| Reply::close());
fault!(a_500_with_text_is_one_error, ["http_status"], Some(500), |_| Reply::full(500, "text/plain", "boom"));
fault!(a_502_with_html_is_one_error, ["http_status"], Some(502), |_| {
    Reply::full(502, "text/html", "<html>Bad Gateway</html>")
});
fault!(a_413_is_one_error, ["http_status"], Some(413), |_| Reply::status(413));
fault!(a_404_with_text_is_one_error, ["http_status"], Some(404), |_| {
    Reply::full(404, "text/plain", "no such page")
});
fault!(a_500_with_an_event_stream_is_one_error, ["http_status"], Some(500), |request| {
    let body = event_text(&result_text(&request.id_raw(), DONE));
    Reply::full(500, "text/event-stream", body)
});
fault!(a_500_with_a_result_is_one_error, ["http_status"], Some(500), |_| Reply::result(DONE)
    .with_status(500));
fault!(a_200_with_html_is_one_error, ["content_type"], None, |_| {
    Reply::full(200, "text/html", "<html>Welcome</html>")
});
fault!(a_200_with_an_empty_type_is_one_error, ["content_type"], None, |request| {
    Reply::full(200, "", result_text(&request.id_raw(), DONE))
});
fault!(a_200_without_a_body_is_one_error, ["no_answer", "content_type", "malformed_answer"], None, |_| {
    Reply::status(200)
});
fault!(a_200_with_an_empty_json_body_is_one_error, ["no_answer", "malformed_answer"], None, |_| {
    Reply::full(200, "application/json", "")
});
fault!(a_202_without_an_answer_is_one_error, ["no_answer"], None, |_| Reply::accepted());
fault!(a_204_is_one_error, ["no_answer"], None, |_| Reply::status(204));
fault!(a_json_body_that_breaks_off_is_one_error, ["connection_lost"], None, |request| {
    Reply::cut_json(result_text(&request.id_raw(), DONE), 40)
});
fault!(a_json_body_cut_after_its_last_byte_but_one_is_one_error, ["connection_lost"], None, |request| {
    let body = result_text(&request.id_raw(), DONE);
    let keep = body.len() - 1;
    Reply::cut_json(body, keep)
});
fault!(a_compressed_body_nobody_asked_for_is_one_error, ["content_encoding"], None, |request| {
    Reply::full(200, "application/json", result_text(&request.id_raw(), DONE))
        .with_header("content-encoding", "gzip")
});
fault!(a_compressed_event_stream_nobody_asked_for_is_one_error, ["content_encoding"], None, |request| {
    Reply::full(200, "text/event-stream", event_text(&result_text(&request.id_raw(), DONE)))
        .with_header("content-encoding", "br")
});
fault!(a_401_in_mid_session_is_one_error, ["sign_in_required"], Some(401), |_| Reply::status(401));
fault!(a_403_is_one_error, ["forbidden"], Some(403), |_| Reply::full(403, "text/plain", "no"));
fault!(a_403_for_want_of_a_scope_is_one_error, ["insufficient_scope"], Some(403), |_| {
    Reply::status(403)
        .with_header("www-authenticate", r#"Bearer error="insufficient_scope", scope="board:write""#)
});

four_eras!(the_missing_scope_is_named, |harness_era, endpoint_era| async {
    let challenge = r#"Bearer error="insufficient_scope", scope="board:write""#;
    let fault = |_: &Recorded| Reply::status(403).with_header("www-authenticate", challenge);
    let error = one_error((harness_era, endpoint_era), &["insufficient_scope"], Some(403), fault).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("board:write"), "{message}");
});

/// The status with which the tool is to answer comes in the arguments, and with it the id that the error names.
async fn passes_as_it_is(harness_era: Era, endpoint_era: Era, statuses: &[u16]) {
    const ERROR: &str = r#"{"code":-32001,"message":"not today","data":{"when":1.0},"x-more":null}"#;
    let fault = |request: &Recorded| {
        let arguments = request.param("arguments");
        let id = if arguments["null"] == true { "null".to_owned() } else { request.id_raw() };
        let status = u16::try_from(arguments["status"].as_u64().unwrap()).unwrap();
        Reply::full(status, "application/json", error_text(&id, ERROR))
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for status in statuses {
        for null in [true, false] {
            let arguments = format!(r#"{{"status":{status},"null":{null}}}"#);
            let answer = scene.harness.call("broken", &arguments).await;
            assert_eq!(answer.member("error").as_deref(), Some(ERROR), "{arguments}: {}", answer.text());
        }
    }
    assert_eq!(scene.broken_calls(), 2 * statuses.len());
    scene.unaffected().await;
}

four_eras!(a_json_rpc_error_in_an_http_error_passes_as_it_is, |harness_era, endpoint_era| async {
    passes_as_it_is(harness_era, endpoint_era, &[400, 404, 409, 422, 429, 500, 501, 503]).await;
});

four_eras!(a_json_rpc_error_with_http_200_passes_as_it_is, |harness_era, endpoint_era| async {
    passes_as_it_is(harness_era, endpoint_era, &[200]).await;
});

fault!(an_http_error_with_the_error_of_another_request_is_one_error, ["http_status"], Some(400), |_| {
    let body = error_text("\"somebody else\"", r#"{"code":-32000,"message":"not yours"}"#);
    Reply::full(400, "application/json", body)
});

four_eras!(unusual_but_legal_media_types_are_read, |harness_era, endpoint_era| async {
    let fault = |request: &Recorded| {
        let answer = result_text(&request.id_raw(), DONE);
        match request.param("arguments")["type"].as_str().unwrap() {
            kind if kind.to_ascii_lowercase().contains("json") => Reply::full(200, kind, answer),
            kind => Reply::full(200, kind, event_text(&answer)),
        }
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for kind in [
        "Application/JSON;Charset=UTF-8",
        "application/json ; charset=\\\"utf-8\\\"",
        "text/event-stream;charset=utf-8",
        "TEXT/Event-Stream",
    ] {
        let answer = scene.harness.call("broken", &format!(r#"{{"type":"{kind}"}}"#)).await;
        assert_eq!(answer.result()["content"][0]["text"], "done", "{kind}: {}", answer.text());
    }
    scene.unaffected().await;
});

four_eras!(a_body_that_comes_byte_by_byte_arrives_whole, |harness_era, endpoint_era| async {
    let fault = |request: &Recorded| {
        let answer = result_text(&request.id_raw(), DONE);
        if request.param("arguments")["as"] == "event" {
            Reply::drip("text/event-stream", event_text(&answer), Duration::from_millis(1))
        } else {
            Reply::drip("application/json", answer, Duration::from_millis(1))
        }
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for kind in ["json", "event"] {
        let answer = scene.harness.call("broken", &format!(r#"{{"as":"{kind}"}}"#)).await;
        assert_eq!(answer.result()["content"][0]["text"], "done");
    }
    scene.unaffected().await;
});

four_eras!(any_success_accepts_a_notification, |harness_era, endpoint_era| async {
    use crate::support::{Endpoint, Harness};
    for (n, accepted) in [
        || Reply::full(200, "text/plain", ""),
        || Reply::status(204),
        || Reply::full(202, "application/json", "{}"),
        || Reply::full(200, "text/html", "<p>thanks</p>"),
    ]
    .into_iter()
    .enumerate()
    {
        let endpoint = Endpoint::era(endpoint_era)
            .on("notifications/initialized", move |_| accepted())
            .on("notifications/cancelled", move |_| accepted())
            .start()
            .await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        let cancelled = harness.start_call("sleep", "{}").await;
        endpoint.arrived("tools/call", 0).await;
        harness.cancel(cancelled).await;
        let answer = harness.call("echo", r#"{"text":"here"}"#).await;
        assert_eq!(answer.result()["content"][0]["text"], "here", "variant {n}");
    }
});
