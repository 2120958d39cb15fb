//! An endpoint that announces a change is looked at again.

use std::sync::Arc;

use tokio::sync::Notify;

use super::{CHANGED, SHUFFLED, names_the_description, sealed, streaming, works};
use crate::{
    opened::{assert_reason, cacheable, leave, opened, opened_with},
    support::{Endpoint, Era, Harness, Reply, Script, four_eras, notification_text},
};

/// The announcements that a look follows.
const ANNOUNCEMENTS: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// Waits until the endpoint can announce something, and has been looked at for what it said before it could.
async fn can_announce(endpoint: &Endpoint, harness_era: Era, endpoint_era: Era) {
    streaming(endpoint, harness_era, endpoint_era).await;
    if endpoint_era == Era::Modern {
        for method in ["tools/list", "prompts/list", "resources/templates/list"] {
            let read = endpoint.arrived(method, 1).await;
            endpoint.fate_of(read.order).await;
        }
    }
}

/// Announces a change on the stream that is there for it.
async fn announce(endpoint: &Endpoint, era: Era, method: &str) {
    match era {
        Era::Modern => endpoint.notify_listens(method, "").await,
        Era::Legacy => endpoint.push(&notification_text(method, "{}")).await,
    }
}

/// Looks so far.
fn looks(endpoint: &Endpoint) -> usize {
    endpoint.requests_of("tools/list").len()
}

fn nothing_announced(harness: &Harness) {
    let told = harness.notifications();
    let lists = |line: &&serde_json::Value| {
        let method = line["method"].as_str().unwrap();
        method == ANNOUNCEMENTS[0] || method == ANNOUNCEMENTS[1]
    };
    assert_eq!(told.iter().filter(lists).count(), 0, "{told:?}");
}

four_eras!(an_equal_surface_is_nothing_to_the_harness, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    can_announce(&endpoint, harness_era, endpoint_era).await;
    let first = harness.ask("tools/list", "{}").await.result();
    endpoint.set_tools(SHUFFLED);
    for method in ANNOUNCEMENTS {
        let before = looks(&endpoint);
        announce(&endpoint, endpoint_era, method).await;
        endpoint.arrived("tools/list", before).await;
        works(&mut harness).await;
    }
    assert_eq!(harness.ask("tools/list", "{}").await.result().to_string(), first.to_string());
    nothing_announced(&harness);
    leave(&mut harness).await;
});

four_eras!(a_different_surface_seals_and_is_named, |harness_era, endpoint_era| async {
    for method in ANNOUNCEMENTS {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era).sessions()).await;
        can_announce(&endpoint, harness_era, endpoint_era).await;
        endpoint.set_tools(CHANGED);
        announce(&endpoint, endpoint_era, method).await;
        let stderr = sealed(&mut harness, &endpoint, harness_era).await;
        names_the_description(&stderr);
        nothing_announced(&harness);
    }
});

four_eras!(a_call_after_an_announcement_waits_for_the_look, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    can_announce(&endpoint, harness_era, endpoint_era).await;
    let calls = endpoint.requests_of("tools/call").len();
    endpoint.set_tools(CHANGED);
    let before = looks(&endpoint);
    announce(&endpoint, endpoint_era, ANNOUNCEMENTS[0]).await;
    endpoint.arrived("tools/list", before).await;
    assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
    assert_eq!(endpoint.requests_of("tools/call").len(), calls, "it was sent to a surface in doubt");
    sealed(&mut harness, &endpoint, harness_era).await;
});

four_eras!(
    a_change_announced_during_a_look_lets_nothing_pass_between_two,
    |harness_era, endpoint_era| async {
        let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
        can_announce(&endpoint, harness_era, endpoint_era).await;
        let calls = endpoint.requests_of("tools/call").len();
        let (tools, prompts) = (looks(&endpoint), endpoint.requests_of("prompts/list").len());
        let held = Arc::new(Notify::new());
        let wait = held.clone();
        endpoint.set("prompts/list", move |_| {
            let members =
                r#""prompts":[{"name":"greet","description":"Say hello.","arguments":[{"name":"who"}]}]"#;
            Reply::sse(Script::new().wait(&wait).result(cacheable(endpoint_era, members)))
        });
        announce(&endpoint, endpoint_era, ANNOUNCEMENTS[0]).await;
        endpoint.arrived("prompts/list", prompts).await;
        let read = endpoint.arrived("tools/list", tools).await;
        endpoint.fate_of(read.order).await;
        // The look has seen the tools as they were.
        endpoint.set_tools(CHANGED);
        announce(&endpoint, endpoint_era, ANNOUNCEMENTS[0]).await;
        // A round trip that needs no endpoint: the announcement was heard.
        assert!(harness.ask("tasks/list", "{}").await.is_error());
        held.notify_one();
        let call = harness.request("tools/call", r#"{"name":"echo","arguments":{"text":"x"}}"#).await;
        endpoint.arrived("prompts/list", prompts + 1).await;
        held.notify_one();
        assert_reason(&harness.answer(call).await, "surface_changed");
        assert_eq!(endpoint.requests_of("tools/call").len(), calls, "it was sent to a surface in doubt");
        sealed(&mut harness, &endpoint, harness_era).await;
    }
);

// A legacy endpoint may say it on any stream: here on that of a call, before the call's answer.
async fn inside_a_call(harness_era: Era, endpoint_era: Era, tools: &'static str) -> (Harness, Endpoint) {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    can_announce(&endpoint, harness_era, endpoint_era).await;
    works(&mut harness).await;
    endpoint.set_tools(tools);
    endpoint.set("tools/call", |_| {
        Reply::sse(
            Script::new()
                .notification(ANNOUNCEMENTS[0], "{}")
                .result(r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}]}"#),
        )
    });
    (harness, endpoint)
}

four_eras!(it_may_be_announced_inside_a_call, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = inside_a_call(harness_era, endpoint_era, SHUFFLED).await;
    let before = looks(&endpoint);
    works(&mut harness).await;
    endpoint.arrived("tools/list", before).await;
    nothing_announced(&harness);
    leave(&mut harness).await;
});

four_eras!(a_change_announced_inside_a_call_withholds_its_answer, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = inside_a_call(harness_era, endpoint_era, CHANGED).await;
    let seen = harness.lines().len();
    let answer = harness.call("echo", r#"{"text":"x"}"#).await;
    assert_reason(&answer, "surface_changed");
    assert!(harness.lines()[seen..].iter().all(|line| line.get("result").is_none()));
    let stderr = sealed(&mut harness, &endpoint, harness_era).await;
    names_the_description(&stderr);
});

four_eras!(a_change_of_the_declared_hash_alone_seals, |harness_era, endpoint_era| async {
    for meta in [r#""surfaceHash":"b""#, r#""x/surfaceHash":"a""#, r#""surfaceHash":7"#, r#""x":1"#] {
        let endpoint = Endpoint::era(endpoint_era).meta(r#""surfaceHash":"a""#);
        let (mut harness, endpoint) = opened(harness_era, endpoint).await;
        can_announce(&endpoint, harness_era, endpoint_era).await;
        endpoint.set_meta(meta);
        announce(&endpoint, endpoint_era, ANNOUNCEMENTS[0]).await;
        sealed(&mut harness, &endpoint, harness_era).await;
    }
});

four_eras!(a_surface_that_cannot_be_read_again_is_not_served, |harness_era, endpoint_era| async {
    let (mut harness, endpoint) = opened(harness_era, Endpoint::era(endpoint_era)).await;
    can_announce(&endpoint, harness_era, endpoint_era).await;
    let calls = endpoint.requests_of("tools/call").len();
    let twice = r#"[{"name":"echo","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]"#;
    endpoint.set_tools(twice);
    let before = looks(&endpoint);
    announce(&endpoint, endpoint_era, ANNOUNCEMENTS[0]).await;
    endpoint.arrived("tools/list", before).await;
    let answer = harness.call("echo", r#"{"text":"x"}"#).await;
    assert!(answer.is_error(), "{}", answer.text());
    assert_eq!(endpoint.requests_of("tools/call").len(), calls);
});

four_eras!(a_look_that_failed_is_made_up_for_before_the_next_request, |harness_era, endpoint_era| async {
    for method in ANNOUNCEMENTS {
        let endpoint = Endpoint::era(endpoint_era);
        let (mut harness, endpoint) = opened_with(harness_era, endpoint, "{}", &["-v"]).await;
        can_announce(&endpoint, harness_era, endpoint_era).await;
        endpoint.set("tools/list", |_| Reply::error_code(-32603, "not now"));
        announce(&endpoint, endpoint_era, method).await;
        harness.wait_stderr("could not be read again").await;
        let tools = cacheable(endpoint_era, &format!(r#""tools":{CHANGED}"#));
        endpoint.set("tools/list", move |_| Reply::result(tools.clone()));
        assert_reason(&harness.call("echo", r#"{"text":"x"}"#).await, "surface_changed");
        assert!(endpoint.requests_of("tools/call").is_empty());
        names_the_description(&sealed(&mut harness, &endpoint, harness_era).await);
    }
});
