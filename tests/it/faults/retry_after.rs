//! An endpoint that asks to wait: the harness learns for how long, at once, and nothing is repeated.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::Scene;
use crate::support::{Era, Recorded, Reply, four_eras};

/// Answers with the status and `Retry-After` that the arguments name; `IN-30` stands for a date in 30 s.
fn asked_to_wait(request: &Recorded) -> Reply {
    let arguments = request.param("arguments");
    let status = u16::try_from(arguments["status"].as_u64().unwrap()).unwrap();
    let reply = Reply::full(status, "text/plain", "later");
    match arguments["after"].as_str() {
        Some("IN-30") => {
            let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(30));
            reply.with_header("retry-after", &date)
        }
        Some(after) => reply.with_header("retry-after", after),
        None => reply,
    }
}

async fn seconds(scene: &mut Scene, status: u16, after: Value) -> Value {
    let reason = if status == 429 { "rate_limited" } else { "http_status" };
    let error = scene.fails(&[reason], &json!({"status": status, "after": after}).to_string()).await;
    assert_eq!(error["data"]["httpStatus"], status, "{error}");
    error["data"]["retryAfterSeconds"].clone()
}

four_eras!(a_wait_in_seconds_is_passed_on, |harness_era, endpoint_era| async {
    let mut scene = Scene::open(harness_era, endpoint_era, &[], asked_to_wait).await;
    for status in [429, 503] {
        assert_eq!(seconds(&mut scene, status, json!("2")).await, 2);
        assert_eq!(seconds(&mut scene, status, json!("0")).await, 0);
        assert_eq!(seconds(&mut scene, status, json!("99999")).await, 99999);
    }
    assert_eq!(scene.broken_calls(), 6, "a call that was refused is not repeated");
    scene.unaffected().await;
});

four_eras!(a_wait_until_a_date_is_passed_on_in_seconds, |harness_era, endpoint_era| async {
    let mut scene = Scene::open(harness_era, endpoint_era, &[], asked_to_wait).await;
    for status in [429, 503] {
        let wait = seconds(&mut scene, status, json!("IN-30")).await;
        assert!(wait.as_u64().is_some_and(|wait| (20..=31).contains(&wait)), "{wait}");
    }
    assert_eq!(scene.broken_calls(), 2);
    scene.unaffected().await;
});

four_eras!(a_wait_that_makes_no_sense_is_left_out, |harness_era, endpoint_era| async {
    let mut scene = Scene::open(harness_era, endpoint_era, &[], asked_to_wait).await;
    let junk =
        [json!("soon"), json!("-1"), json!("1.5"), json!(""), json!("2 s"), json!("99999999999999999999999")];
    for status in [429, 503] {
        for after in junk.iter().cloned().chain([Value::Null]) {
            assert_eq!(seconds(&mut scene, status, after.clone()).await, Value::Null, "{after}");
        }
    }
    assert_eq!(scene.broken_calls(), 14);
    scene.unaffected().await;
});

four_eras!(a_read_that_is_refused_with_a_wait_is_answered_at_once, |harness_era, endpoint_era| async {
    let scene = Scene::open(harness_era, endpoint_era, &[], |_| Reply::close()).await;
    let Scene { endpoint, mut harness, .. } = scene;
    endpoint.set("resources/read", |_| Reply::status(503).with_header("retry-after", "3600"));
    let answer = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
    assert_eq!(answer.error()["data"]["reason"], "http_status", "{}", answer.text());
    assert_eq!(answer.error()["data"]["retryAfterSeconds"], 3600, "{}", answer.text());
    assert_eq!(endpoint.requests_of("resources/read").len(), 1);
});
