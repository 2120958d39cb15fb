//! What the harness asks reaches the endpoint as it was asked.

use super::{cases, members, value, without};
use crate::support::{Endpoint, Era, Harness, Recorded, four_eras};

/// Members of `_meta` with which a request counts as one of that era.
fn era_meta(era: Era) -> &'static str {
    match era {
        Era::Modern => {
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"#
        }
        Era::Legacy => "",
    }
}

fn params_of(request: &Recorded) -> String {
    value(std::str::from_utf8(&request.body).unwrap(), "params")
}

const META: [&str; 1] = ["\"_meta\""];

/// Sends each of the params as a line of its own, and holds what arrives against it.
async fn params_arrive(harness_era: Era, endpoint_era: Era, method: &str, all: &[String]) {
    let capabilities = super::CAPABILITIES;
    let endpoint = Endpoint::era(endpoint_era).capabilities(capabilities).allow_unknown().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    for (n, params) in all.iter().enumerate() {
        let params = params.replace("ERA", era_meta(harness_era));
        let line = format!(r#"{{"jsonrpc":"2.0","id":"up-{n}","method":"{method}","params":{params}}}"#);
        harness.send_line(line.as_bytes()).await;
        harness.answer_to(&format!("\"up-{n}\"")).await;
        let arrived = params_of(&endpoint.arrived(method, n).await);
        assert_eq!(without(&arrived, &META), without(&params, &META), "{params}");
        let (sent, arrived) = (value(&params, "_meta"), value(&arrived, "_meta"));
        let arrived = members(&arrived);
        for (key, value) in
            members(&sent).into_iter().filter(|(key, _)| !key.contains("modelcontextprotocol"))
        {
            assert!(arrived.contains(&(key.clone(), value)), "{key} of _meta in {params}: {arrived:?}");
        }
    }
}

four_eras!(arguments_arrive_as_they_were_given, |harness_era, endpoint_era| async {
    let mut all = Vec::new();
    for (_, arguments) in cases("arguments") {
        all.push(format!(r#"{{"name":"echo","arguments":{arguments},"_meta":{{ERA"example.com/a":1e3}}}}"#));
        all.push(format!(
            r#"{{"_meta":{{"traceparent":"00-\u0061-b-01",ERA"example.com/a":[1.0,null],"":{{}}}},"z":1.0,"arguments":{arguments},"":null,"name":"\u0065cho","a":[{{}}]}}"#
        ));
    }
    params_arrive(harness_era, endpoint_era, "tools/call", &all).await;
});

four_eras!(arguments_of_prompts_arrive_as_they_were_given, |harness_era, endpoint_era| async {
    let mut all = Vec::new();
    for (_, arguments) in cases("arguments") {
        all.push(format!(
            r#"{{"arguments":{arguments},"name":"greet","x-unknown":-0,"_meta":{{ERA"example.com/a":1E+2}}}}"#
        ));
    }
    params_arrive(harness_era, endpoint_era, "prompts/get", &all).await;
});

four_eras!(uris_arrive_as_they_were_spelled, |harness_era, endpoint_era| async {
    let all = [
        "memo://one",
        r"memo:\/\/one",
        r"memo://\u00e9 x",
        "memo://é/東京 🚀",
        r"memo://\ud83d\ude80",
        "memo://%20?a=b#c",
    ]
    .map(|uri| format!(r#"{{"x":1.0,"uri":"{uri}","_meta":{{ERA"example.com/a":null}},"":[]}}"#));
    params_arrive(harness_era, endpoint_era, "resources/read", &all).await;
});

four_eras!(completions_arrive_as_they_were_asked_for, |harness_era, endpoint_era| async {
    let all = [
        r#"{"argument":{"value":"\u0061","name":"who","x":1.0},"ref":{"type":"ref/prompt","name":"greet"},"context":{"arguments":{"z":"","a":"\/"}},"_meta":{ERA"a/b":-0}}"#
            .to_owned(),
    ];
    params_arrive(harness_era, endpoint_era, "completion/complete", &all).await;
});

four_eras!(white_space_in_a_request_changes_nothing, |harness_era, endpoint_era| async {
    let all = [
        "{ \"name\" : \"echo\" ,\t\"arguments\" : { \"text\" : \"a\" ,  \"n\":[ 1.0 ] } , \"_meta\" : { ERA \"example.com/a\" : [ ] } }"
            .to_owned(),
    ];
    params_arrive(harness_era, endpoint_era, "tools/call", &all).await;
});
