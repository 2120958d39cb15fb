//! One message may be as large as `--max-message-bytes` says, from either side, and no larger.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::{Scene, faulty};
use crate::support::{Era, Recorded, Reply, Script, four_eras, result_text};

const LIMIT: usize = 65_536;
const ARGS: [&str; 2] = ["--max-message-bytes", "65536"];

/// An answer of exactly that many bytes.
fn answer_of(request: &Recorded, bytes: usize) -> String {
    let sized = |text: &str| {
        let result = format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}"#);
        result_text(&request.id_raw(), &result)
    };
    let answer = sized(&"a".repeat(bytes - sized("").len()));
    assert_eq!(answer.len(), bytes);
    answer
}

/// Answers as large as the arguments say, as JSON or as an event.
fn sized(request: &Recorded) -> Reply {
    let arguments = request.param("arguments");
    let answer = answer_of(request, usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap());
    match arguments["as"].as_str().unwrap() {
        "json" => Reply::full(200, "application/json", answer),
        _ => Reply::sse(Script::new().event(answer)),
    }
}

four_eras!(
    an_answer_up_to_the_limit_passes_and_one_above_it_is_one_error,
    |harness_era, endpoint_era| async {
        let mut scene = Scene::open(harness_era, endpoint_era, &ARGS, sized).await;
        for kind in ["json", "event"] {
            for bytes in [LIMIT - 1, LIMIT] {
                let answer =
                    scene.harness.call("broken", &json!({"bytes": bytes, "as": kind}).to_string()).await;
                assert!(!answer.is_error(), "{bytes} bytes as {kind}: {}", answer.text());
            }
            for bytes in [LIMIT + 1, 2 * LIMIT, 20 * LIMIT] {
                let error =
                    scene.fails(&["too_large"], &json!({"bytes": bytes, "as": kind}).to_string()).await;
                let message = error["message"].as_str().unwrap();
                assert!(message.contains("--max-message-bytes") && message.contains("65536"), "{message}");
            }
        }
        assert_eq!(scene.broken_calls(), 10);
        scene.unaffected().await;
    }
);

four_eras!(a_body_without_end_is_one_error_and_is_let_go, |harness_era, endpoint_era| async {
    let endless = |request: &Recorded| match request.param("arguments")["as"].as_str().unwrap() {
        "json" => Reply::endless("application/json", " ".repeat(10_000)),
        "line" => Reply::endless("text/event-stream", format!("data: {}", "a".repeat(10_000))),
        "lines" => Reply::endless("text/event-stream", format!("data: {}\n", "a".repeat(10_000))),
        "html" => Reply::endless("text/html", "<p>".repeat(3000)),
        _ => Reply::endless("text/plain", "x".repeat(10_000)).with_status(500),
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &ARGS, endless).await;
    for (n, (kind, reasons)) in [
        ("json", ["too_large", ""]),
        ("line", ["too_large", ""]),
        ("lines", ["too_large", ""]),
        ("html", ["too_large", "content_type"]),
        ("error", ["too_large", "http_status"]),
    ]
    .iter()
    .enumerate()
    {
        scene.fails(reasons, &json!({"as": kind}).to_string()).await;
        let order = scene.endpoint.arrived("tools/call", n + 1).await.order;
        scene.endpoint.client_closed(order).await;
    }
    assert_eq!(scene.broken_calls(), 5);
    scene.unaffected().await;
});

four_eras!(many_events_may_be_larger_together_than_one_may_be, |harness_era, endpoint_era| async {
    let fault = |request: &Recorded| {
        let mut script = Script::new();
        for n in 0..20 {
            let params =
                format!(r#"{{"progressToken":"nobody's","progress":{n},"x":"{}"}}"#, "a".repeat(10_000));
            script = script.notification("notifications/progress", &params);
        }
        Reply::sse(script.comment("still here").event(answer_of(request, LIMIT)))
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &ARGS, fault).await;
    let answer = scene.harness.call("broken", "{}").await;
    assert!(!answer.is_error(), "{}", answer.text());
    scene.unaffected().await;
});

/// A call of exactly that many bytes, as a line.
fn line_of(id: &str, bytes: usize, modern: bool) -> String {
    let meta = if modern {
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
    } else {
        ""
    };
    let sized = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}{meta}}}}}"#
        )
    };
    let line = sized(&"a".repeat(bytes - sized("").len()));
    assert_eq!(line.len(), bytes);
    line
}

async fn open(harness_era: Era, endpoint_era: Era) -> Scene {
    let gate = Arc::new(Notify::new());
    let builder = faulty(endpoint_era, &gate, |_| Reply::close());
    // the answer repeats the text, and has to stay below the limit itself
    let builder = builder.on("tools/call", {
        let gate = gate.clone();
        move |request| match (request.subject(), request.param("arguments")["text"].as_str()) {
            ("sleep", _) => Reply::sse(Script::new().wait(&gate).result(super::AWAKE)),
            (_, Some(text)) if text.len() > 1000 => Reply::text("long"),
            (_, text) => Reply::text(text.unwrap_or_default()),
        }
    });
    Scene::on(harness_era, builder, gate, &ARGS).await
}

four_eras!(a_line_up_to_the_limit_is_taken_and_one_above_it_is_refused, |harness_era, endpoint_era| async {
    let mut scene = open(harness_era, endpoint_era).await;
    let modern = harness_era == Era::Modern;
    for (id, bytes) in [("\"below\"", LIMIT - 1), ("\"at\"", LIMIT)] {
        scene.harness.send_line(line_of(id, bytes, modern).as_bytes()).await;
        let answer = scene.harness.answer_to(id).await;
        assert_eq!(answer.result()["content"][0]["text"], "long", "{id}");
    }
    for (id, bytes) in [("\"above\"", LIMIT + 1), ("\"far\"", 3 * LIMIT), ("\"very far\"", 50 * LIMIT)] {
        scene.harness.send_line(line_of(id, bytes, modern).as_bytes()).await;
        let answer = scene.harness.answer_or_null(id).await;
        assert_eq!(answer.error()["code"], -32600, "{id}: {}", answer.text());
        let message = answer.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("--max-message-bytes"), "{message}");
        let good = scene.harness.call("echo", r#"{"text":"good"}"#).await;
        assert_eq!(good.result()["content"][0]["text"], "good", "{id}");
    }
    assert_eq!(scene.endpoint.requests_of("tools/call").len(), 1 + 2 + 3);
    scene.unaffected().await;
});

/// What is skipped is not kept: a line of 300 MB does not take 300 MB.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_line_without_end_does_not_fill_the_memory() {
    let mut scene = open(Era::Legacy, Era::Legacy).await;
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":"huge","method":"ping","x":"{}"}}"#, "a".repeat(300_000_000));
    scene.harness.send_unreadable(line.as_bytes(), "\"huge\"").await;
    let answer = scene.harness.answer_or_null("\"huge\"").await;
    assert_eq!(answer.error()["code"], -32600);
    let peak = super::peak_kilobytes(&scene.harness);
    assert!(peak < 30_000, "{peak} kB");
    scene.unaffected().await;
}

four_eras!(a_limit_that_nothing_was_said_about_lets_large_answers_pass, |harness_era, endpoint_era| async {
    const BIG: usize = 20 * 1024 * 1024;
    let fault = |request: &Recorded| {
        let answer = answer_of(request, BIG);
        if request.param("arguments")["as"] == "event" {
            Reply::sse(Script::new().event(answer))
        } else {
            Reply::full(200, "application/json", answer)
        }
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for kind in ["json", "event"] {
        let answer = scene.harness.call("broken", &json!({"as": kind}).to_string()).await;
        assert!(!answer.is_error());
        assert!(answer.line.len() > BIG - 1000);
    }
    scene.unaffected().await;
});
