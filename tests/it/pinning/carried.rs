//! The hash that an endpoint declares goes with everything it says.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::{DECLARED, End, NOT_PINNED, QUIET, nowhere, quiet, sealed, sealed_until, streaming, works};
use crate::{
    opened::{FORMS, assert_reason, complete, opened, opened_with},
    support::{Endpoint, Era, Harness, Reply, Script, four_eras},
};

const SECRET: &str = "not to be seen";
/// A `_meta` without the pinned hash, and how that looks.
const WITHOUT: [&str; 6] = [
    r#""x":1"#,
    r#""com.example/surfaceHash":"sha256:two""#,
    r#""com.example/surfaceHash":["sha256:one"]"#,
    r#""com.example/surfaceHash":null"#,
    r#""surfaceHash":"sha256:one""#,
    r#""com.example/surfaceHash":"sha256:one","surfaceHash":"sha256:two""#,
];
/// Every method that is forwarded.
const FORWARDED: [(&str, &str); 5] = [
    ("tools/call", r#"{"name":"echo","arguments":{"text":"x"}}"#),
    ("resources/read", r#"{"uri":"memo://one"}"#),
    ("resources/list", "{}"),
    ("prompts/get", r#"{"name":"greet"}"#),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":""}}"#,
    ),
];

/// The members of a good result of a forwarded method.
fn members(method: &str) -> String {
    match method {
        "tools/call" => format!(r#""content":[{{"type":"text","text":"{SECRET}"}}]"#),
        "resources/read" => format!(
            r#""contents":[{{"uri":"memo://one","text":"{SECRET}"}}],"ttlMs":0,"cacheScope":"private""#
        ),
        "resources/list" => format!(
            r#""resources":[{{"uri":"memo://x","name":"{SECRET}"}}],"ttlMs":0,"cacheScope":"private""#
        ),
        "prompts/get" => {
            format!(r#""messages":[{{"role":"user","content":{{"type":"text","text":"{SECRET}"}}}}]"#)
        }
        _ => format!(r#""completion":{{"values":["{SECRET}"]}}"#),
    }
}

/// A result of a forwarded method with that `_meta`.
fn result(era: Era, method: &str, meta: &str) -> String {
    complete(era, &format!(r#"{},"_meta":{{{meta}}}"#, members(method)))
}

async fn pinned(era: Era, endpoint_era: Era, sse: bool) -> (Harness, Endpoint) {
    let endpoint = quiet(endpoint_era).meta(DECLARED);
    opened(era, if sse { endpoint.sse() } else { endpoint }).await
}

async fn every_result(harness_era: Era, endpoint_era: Era, sse: bool) {
    for (method, params) in FORWARDED {
        // with it, all is well
        let (mut harness, endpoint) = pinned(harness_era, endpoint_era, sse).await;
        endpoint.set(method, move |_| Reply::result(result(endpoint_era, method, DECLARED)));
        let answer = harness.ask(method, params).await;
        assert!(answer.result().to_string().contains(SECRET), "{}", answer.text());
        drop((harness, endpoint));
        for meta in WITHOUT {
            let (mut harness, endpoint) = pinned(harness_era, endpoint_era, sse).await;
            endpoint.set(method, move |_| Reply::result(result(endpoint_era, method, meta)));
            assert_reason(&harness.ask(method, params).await, "surface_changed");
            let stderr = sealed(&mut harness, &endpoint, harness_era).await;
            nowhere(&harness, SECRET);
            assert!(stderr.contains("sha256:one"), "{method} {meta}: {stderr}");
            let line = stderr.lines().find(|line| line.contains(NOT_PINNED)).unwrap();
            assert!(
                line.contains(method) || line.contains("sha256:two") || line.contains("an answer"),
                "{line}"
            );
        }
        // no `_meta` at all, and one that is none
        for meta in ["", r#","_meta":null"#, r#","_meta":[]"#, r#","_meta":"com.example/surfaceHash""#] {
            let (mut harness, endpoint) = pinned(harness_era, endpoint_era, sse).await;
            endpoint.set(method, move |_| Reply::result(complete(endpoint_era, &(members(method) + meta))));
            let answer = harness.ask(method, params).await;
            assert!(answer.is_error(), "{}", answer.text());
            nowhere(&harness, SECRET);
            if answer.error()["data"]["reason"] == "surface_changed" {
                sealed(&mut harness, &endpoint, harness_era).await;
            }
        }
    }
}

four_eras!(
    every_result_that_completes_a_request_must_carry_the_pinned_hash,
    |harness_era, endpoint_era| async {
        every_result(harness_era, endpoint_era, false).await;
    }
);

four_eras!(so_must_one_that_comes_as_an_event, |harness_era, endpoint_era| async {
    every_result(harness_era, endpoint_era, true).await;
});

four_eras!(a_sealed_session_ends_with_2_on_a_signal_too, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, quiet(endpoint_era).meta(DECLARED).sessions()).await;
    endpoint.set_meta(r#""x":1"#);
    assert_reason(&harness.call("echo", r#"{"text":"not to be seen"}"#).await, "surface_changed");
    // with a session, so that there would be something to give back
    sealed_until(&mut harness, &endpoint, harness_era, End::Terminated).await;
    nowhere(&harness, SECRET);
});

four_eras!(requests_in_flight_are_answered_and_their_streams_closed, |harness_era, endpoint_era| async {
    // it announces, so that there are also streams which belong to no request
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).meta(DECLARED)).await;
    works(&mut harness).await;
    let sleepers = [harness.start_call("sleep", "{}").await, harness.start_call("sleep", "{}").await];
    endpoint.wait_for(|all| all.iter().filter(|one| one.subject() == "sleep").count() == 2).await;
    streaming(&endpoint, harness_era, endpoint_era).await;
    endpoint.set("tools/call", move |_| Reply::result(result(endpoint_era, "tools/call", r#""x":1"#)));
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    for id in sleepers {
        assert_reason(&harness.answer(id).await, "surface_changed");
    }
    for sleeper in endpoint.requests().iter().filter(|one| one.subject() == "sleep") {
        endpoint.client_closed(sleeper.order).await;
    }
    sealed(&mut harness, &endpoint, harness_era).await;
    assert!(endpoint.requests_of("notifications/cancelled").is_empty(), "something was sent after the seal");
    nowhere(&harness, "awake");
});

four_eras!(an_error_may_lack_the_hash, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = pinned(harness_era, endpoint_era, false).await;
    for error in [
        r#"{"code":-32602,"message":"no"}"#.to_owned(),
        r#"{"code":-32602,"message":"no","data":{"x":1}}"#.to_owned(),
        r#"{"code":-32602,"message":"no","data":7}"#.to_owned(),
        format!(r#"{{"code":-32602,"message":"no","data":{{{DECLARED},"_meta":{{{DECLARED}}}}}}}"#),
    ] {
        endpoint.set("resources/read", move |_| Reply::error(error.clone()));
        let answer = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
        assert_eq!(answer.error()["message"], "no", "{}", answer.text());
    }
    works(&mut harness).await;
});

four_eras!(a_hash_in_an_error_that_differs_counts_wherever_it_is, |harness_era, endpoint_era| async {
    let other = r#""surfaceHash":"sha256:two""#;
    for error in [
        format!(r#"{{"code":-32602,"message":"{SECRET}","data":{{{other}}}}}"#),
        format!(r#"{{"code":-32602,"message":"{SECRET}","data":{{"_meta":{{{other}}}}}}}"#),
        format!(r#"{{"code":-32602,"message":"{SECRET}","_meta":{{{other}}}}}"#),
        format!(r#"{{"code":-32602,"message":"{SECRET}","data":{{"com.example/surfaceHash":7}}}}"#),
        // one reader would take the first, another the last
        format!(r#"{{"code":-32602,"message":"{SECRET}","data":{{{DECLARED},{DECLARED}}}}}"#),
        format!(r#"{{"code":-32602,"message":"{SECRET}","_meta":{{{DECLARED},"x":1,"x":2}}}}"#),
    ] {
        for status in [200, 400] {
            let (mut harness, endpoint) = pinned(harness_era, endpoint_era, false).await;
            let error = error.clone();
            endpoint.set("tools/call", move |_| Reply::error(error.clone()).with_status(status));
            assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
            sealed(&mut harness, &endpoint, harness_era).await;
            nowhere(&harness, SECRET);
        }
    }
});

four_eras!(a_hash_in_a_notification_that_differs_counts, |harness_era, endpoint_era| async {
    for (method, params) in [
        ("notifications/progress", r#""progressToken":TOKEN,"progress":1,"message":"not to be seen""#),
        ("notifications/message", r#""level":"error","data":"not to be seen""#),
        ("notifications/unheard/of", r#""x":"not to be seen""#),
    ] {
        let (mut harness, endpoint) = pinned(harness_era, endpoint_era, false).await;
        endpoint.set("tools/call", move |request| {
            let token = request.param("_meta")["progressToken"].to_string();
            let params = params.replace("TOKEN", &token);
            let params = format!(r#"{{{params},"_meta":{{"surfaceHash":"sha256:two"}}}}"#);
            let good = result(endpoint_era, "tools/call", DECLARED);
            Reply::sse(Script::new().notification(method, &params).result(good))
        });
        let call = r#"{"name":"echo","arguments":{"text":"x"},"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug"}}"#;
        assert_reason(&harness.ask("tools/call", call).await, "surface_changed");
        sealed(&mut harness, &endpoint, harness_era).await;
        nowhere(&harness, SECRET);
    }
});

/// One that comes by itself, on a legacy endpoint's own stream.
#[tokio::test]
async fn a_hash_on_the_event_stream_that_differs_counts() {
    for harness_era in crate::opened::BOTH {
        let (mut harness, endpoint) = opened(harness_era, quiet(Era::Legacy).meta(DECLARED)).await;
        endpoint.get_streams(1).await;
        let note = json!({"jsonrpc":"2.0","method":"notifications/message","params":
            {"level":"error","data":SECRET,"_meta":{"x/surfaceHash":"sha256:two"}}});
        endpoint.push(&note.to_string()).await;
        sealed(&mut harness, &endpoint, harness_era).await;
        nowhere(&harness, SECRET);
    }
}

four_eras!(a_question_may_lack_the_hash_and_must_not_carry_another, |harness_era, endpoint_era| async {
    // the default `ask` asks without a hash and completes with it
    let endpoint = quiet(endpoint_era).meta(DECLARED);
    let (mut harness, _endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
    let yes = r#"{"action":"accept","content":{"allow":true}}"#;
    let id = harness.start_call("ask", "{}").await;
    if harness_era == Era::Legacy {
        let question = harness.next_request().await;
        harness.reply(&question["id"].to_string(), yes).await;
        assert!(harness.answer(id).await.result()["content"].is_array());
    } else {
        let asked = harness.answer(id).await.result();
        assert_eq!(asked["resultType"], "input_required");
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let again = json!({"name":"ask","arguments":{},"requestState":asked["requestState"],
            "inputResponses":{key: serde_json::from_str::<serde_json::Value>(yes).unwrap()}});
        let done = harness.ask("tools/call", &again.to_string()).await;
        assert!(done.result()["content"].is_array(), "{}", done.text());
    }
});

four_eras!(a_question_with_another_hash_is_not_put, |harness_era, endpoint_era| async {
    let endpoint = quiet(endpoint_era).meta(DECLARED);
    let (mut harness, endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
    let question = r#"{"mode":"form","message":"not to be seen","requestedSchema":{"type":"object","properties":{}},"_meta":{"surfaceHash":"sha256:two"}}"#;
    endpoint.set("tools/call", move |_| match endpoint_era {
        Era::Modern => {
            let meta = r#""_meta":{"surfaceHash":"sha256:two"}"#;
            Reply::result(format!(
                r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"a":{{"method":"elicitation/create","params":{question}}}}},{meta}}}"#
            ))
        }
        Era::Legacy => Reply::sse(Script::new().request("1", "elicitation/create", question).hang()),
    });
    assert_reason(&harness.call("ask", "{}").await, "surface_changed");
    sealed(&mut harness, &endpoint, harness_era).await;
    nowhere(&harness, SECRET);
});

#[tokio::test]
async fn a_question_with_another_hash_inside_a_result_is_not_put() {
    for harness_era in crate::opened::BOTH {
        let endpoint = quiet(Era::Modern).meta(DECLARED);
        let (mut harness, endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
        endpoint.set("tools/call", |_| {
            Reply::result(format!(
                r#"{{"resultType":"input_required","requestState":"s","inputRequests":{{"a":{{"method":"elicitation/create","params":{{"mode":"form","message":"{SECRET}","requestedSchema":{{"type":"object","properties":{{}}}},"_meta":{{"surfaceHash":"sha256:two"}}}}}}}},"_meta":{{{DECLARED}}}}}"#
            ))
        });
        assert_reason(&harness.call("ask", "{}").await, "surface_changed");
        sealed(&mut harness, &endpoint, harness_era).await;
        nowhere(&harness, SECRET);
    }
}

four_eras!(a_result_whose_bytes_are_still_coming_is_not_shown, |harness_era, endpoint_era| async {
    // two calls: the first one's answer is good but comes when the second one has sealed the session
    let gate = Arc::new(Notify::new());
    let (mut harness, endpoint) = pinned(harness_era, endpoint_era, false).await;
    let waiting = gate.clone();
    endpoint.set("tools/call", move |request| match request.subject() {
        "sleep" => {
            Reply::sse(Script::new().wait(&waiting).result(result(endpoint_era, "tools/call", DECLARED)))
        }
        _ => Reply::result(result(endpoint_era, "tools/call", r#""x":1"#)),
    });
    let first = harness.start_call("sleep", "{}").await;
    endpoint.arrived("tools/call", 0).await;
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    gate.notify_one();
    assert_reason(&harness.answer(first).await, "surface_changed");
    sealed(&mut harness, &endpoint, harness_era).await;
    nowhere(&harness, SECRET);
});

four_eras!(
    a_declared_hash_that_was_not_there_at_start_is_none_of_the_pin,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) =
            opened(harness_era, Endpoint::era(endpoint_era).capabilities(QUIET)).await;
        endpoint.set_meta(DECLARED);
        works(&mut harness).await;
        drop(endpoint);
    }
);

four_eras!(what_the_harness_answers_after_the_seal_goes_nowhere, |harness_era, endpoint_era| async {
    let endpoint = quiet(endpoint_era).meta(DECLARED);
    let (mut harness, endpoint) = opened_with(harness_era, endpoint, FORMS, &[]).await;
    let asked = harness.start_call("ask", "{}").await;
    let yes = r#"{"action":"accept","content":{"allow":true}}"#;
    // a legacy harness is asked while the call goes on; a modern one calls again
    let (question, again) = if harness_era == Era::Legacy {
        // a question by result is put to it in a call that goes on here alone
        (Some(harness.next_request().await["id"].to_string()), None)
    } else {
        let asked = harness.answer(asked).await.result();
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let again = json!({"name":"ask","arguments":{},"requestState":asked["requestState"],
            "inputResponses":{key: serde_json::from_str::<serde_json::Value>(yes).unwrap()}});
        (None, Some(again.to_string()))
    };
    endpoint.set_meta(r#""x":1"#);
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    let sent = endpoint.requests().len();
    if let Some(id) = question {
        assert_reason(&harness.answer(asked).await, "surface_changed");
        harness.reply(&id, yes).await;
    }
    if let Some(again) = again {
        assert_reason(&harness.ask("tools/call", &again).await, "surface_changed");
    }
    sealed(&mut harness, &endpoint, harness_era).await;
    assert_eq!(endpoint.requests().len(), sent);
});

#[tokio::test]
async fn a_listen_of_the_harness_ends_with_the_seal() {
    for endpoint_era in crate::opened::BOTH {
        let endpoint = Endpoint::era(endpoint_era).meta(DECLARED);
        let (mut harness, endpoint) = opened(Era::Modern, endpoint).await;
        let listen = r#"{"notifications":{"resourceSubscriptions":["memo://one"]}}"#;
        let listen = harness.request("subscriptions/listen", listen).await;
        harness.next_notification("notifications/subscriptions/acknowledged").await;
        endpoint.set("tools/call", move |_| Reply::result(result(endpoint_era, "tools/call", r#""x":1"#)));
        assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
        assert_reason(&harness.answer(listen).await, "surface_changed");
        sealed(&mut harness, &endpoint, Era::Modern).await;
    }
}

four_eras!(a_skill_must_carry_the_pinned_hash_too, |harness_era, endpoint_era| async {
    let uri = r#"{"uri":"skill://a/b/SKILL.md"}"#;
    for method in ["resources/read", "skills/get"] {
        let skill = crate::support::Skill::new("skill://a/b");
        let endpoint = Endpoint::era(endpoint_era).skills(&[skill]).meta(DECLARED).capabilities(
            r#"{"tools":{},"resources":{},"prompts":{},"extensions":{"io.modelcontextprotocol/skills":{}}}"#,
        );
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        endpoint.set_meta(r#""com.example/surfaceHash":"sha256:two""#);
        let before = endpoint.requests().len();
        let answer = harness.ask(method, uri).await;
        if endpoint.requests().len() == before {
            // it was served from what was verified
            assert!(!answer.is_error(), "{}", answer.text());
            continue;
        }
        assert_reason(&answer, "surface_changed");
        sealed(&mut harness, &endpoint, harness_era).await;
        nowhere(&harness, "About b");
    }
    // and where the hash is missing
    let skill = crate::support::Skill::new("skill://a/b");
    let endpoint = Endpoint::era(endpoint_era).skills(&[skill]).meta(DECLARED).capabilities(
        r#"{"tools":{},"resources":{},"prompts":{},"extensions":{"io.modelcontextprotocol/skills":{}}}"#,
    );
    let (mut harness, endpoint) = opened(harness_era, endpoint).await;
    endpoint.set_meta("");
    assert_reason(&harness.ask("resources/read", uri).await, "surface_changed");
    sealed(&mut harness, &endpoint, harness_era).await;
    nowhere(&harness, "# b");
});
