//! Results and errors that pass through.

use super::{CAPABILITIES, as_sent, asked, cases, judge, members, one_line, value};
use crate::support::{Endpoint, Era, Harness, Reply, four_eras, result_text};

async fn results_arrive(eras: (Era, Era), kind: &str, method: &str, params: &str, cached: bool) {
    let (harness_era, endpoint_era) = eras;
    for sse in [false, true] {
        let builder = Endpoint::era(endpoint_era).capabilities(CAPABILITIES);
        let endpoint = if sse { builder.sse() } else { builder }.start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        for (n, (case, text)) in cases(kind).into_iter().enumerate() {
            let sent = as_sent(endpoint_era, &text, cached, n);
            let reply = sent.clone();
            endpoint.set(method, move |_| Reply::result(reply.clone()));
            let received = asked(&mut harness, method, params).await;
            judge(eras, &case, &sent, &received, cached);
        }
    }
}

four_eras!(results_of_tools_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    let params = r#"{"name":"echo","arguments":{}}"#;
    results_arrive((harness_era, endpoint_era), "tools-call", "tools/call", params, false).await;
});

four_eras!(prompts_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    let eras = (harness_era, endpoint_era);
    results_arrive(eras, "prompts-get", "prompts/get", r#"{"name":"greet"}"#, false).await;
});

four_eras!(resources_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    let eras = (harness_era, endpoint_era);
    results_arrive(eras, "resources-read", "resources/read", r#"{"uri":"memo://one"}"#, true).await;
});

four_eras!(lists_of_resources_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    let eras = (harness_era, endpoint_era);
    results_arrive(eras, "resources-list", "resources/list", "{}", true).await;
});

four_eras!(completions_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    let params = r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"a"}}"#;
    results_arrive((harness_era, endpoint_era), "completion", "completion/complete", params, false).await;
});

four_eras!(errors_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    for sse in [false, true] {
        let builder = Endpoint::era(endpoint_era);
        let endpoint = if sse { builder.sse() } else { builder }.start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        for (case, text) in cases("error") {
            for status in [200, 400] {
                let sent = text.clone();
                endpoint.set("tools/call", move |_| Reply::error(sent.clone()).with_status(status));
                let answer = harness.call("echo", "{}").await;
                assert_eq!(answer.member("error").unwrap(), one_line(&text), "{case} with HTTP {status}");
            }
        }
    }
});

four_eras!(an_envelope_of_unusual_form_is_read, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let text = r#"{"content":[{"type":"text","text":"t","x":1.0}],"z":null}"#;
    let sent = as_sent(endpoint_era, text, false, 0);
    for form in [
        "\r\n\t {\r\n  \"result\" : RESULT ,\n\t\"x-more\":{\"id\":7},\n  \"id\"\t: ID , \"jsonrpc\":\"2.0\"\n}\n\n",
        "{\"id\":ID,\"result\":RESULT,\"jsonrpc\":\"2.0\"}",
        "{\"x\":null,\"jsonrpc\":\"\\u0032.0\",\"r\\u0065sult\":RESULT,\"i\\u0064\":ID}",
    ] {
        let result = sent.clone();
        endpoint.set("tools/call", move |request| {
            let body = form.replace("RESULT", &result).replace("ID", &request.id_raw());
            Reply::full(200, "application/json", body)
        });
        let answer = harness.call("echo", "{}").await;
        judge((harness_era, endpoint_era), form, &sent, &answer.result_raw(), false);
        let keys: Vec<String> = members(&answer.text()).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), 3, "an envelope has the members of JSON-RPC and no others: {keys:?}");
    }
});

/// Modern structured content may be any JSON value.
#[tokio::test]
async fn structured_content_of_any_type_arrives_in_the_modern_era() {
    let endpoint = Endpoint::modern().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(Era::Modern, "{}").await.result();
    for value in ["[1.0,null]", "null", "\"\\u00e9\"", "1E+2", "false", "{}"] {
        let sent = format!(r#"{{"resultType":"complete","structuredContent":{value},"content":[]}}"#);
        let reply = sent.clone();
        endpoint.set("tools/call", move |_| Reply::result(reply.clone()));
        assert_eq!(harness.call("echo", "{}").await.result_raw(), sent);
    }
}

four_eras!(results_of_many_calls_at_once_are_not_mixed_up, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    endpoint.set("tools/call", move |request| {
        let n = request.param("arguments")["n"].as_u64().unwrap();
        let result = as_sent(endpoint_era, &format!(r#"{{"content":[],"n":{n}.0}}"#), false, 0);
        Reply::full(200, "application/json", result_text(&request.id_raw(), &result))
    });
    let mut calls = Vec::new();
    for n in 0..50 {
        calls.push((n, harness.start_call("echo", &format!(r#"{{"n":{n}}}"#)).await));
    }
    for (n, id) in calls {
        assert_eq!(value(&harness.answer(id).await.result_raw(), "n"), format!("{n}.0"));
    }
});
