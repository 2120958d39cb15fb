//! Answers that two readers could read in two ways, or that are no answers at all.

use super::{Scene, bodies_are_refused, fault};
use crate::support::{Era, Recorded, Reply, Script, four_eras};

four_eras!(a_body_that_is_no_json_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        "hello",
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[01]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[NaN]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":["\x"]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{'content':[]}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\"\t\"]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\"\0\"]}}",
        "\u{a0}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[]}}",
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_body_that_is_no_answer_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        "[]",
        "{}",
        "null",
        "7",
        "\"text\"",
        r#"[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
        r#"{"jsonrpc":"1.0","id":ID,"result":{"content":[]}}"#,
        r#"{"id":ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":2.0,"id":ID,"result":{"content":[]}}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(two_texts_in_one_body_are_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[]}}\n{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}",
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}} x"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_result_together_with_an_error_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"error":{"code":-1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"x"},"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":null,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"method":"ping","result":{"content":[]}}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_result_that_is_no_object_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":"done"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":7}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_duplicate_key_in_the_envelope_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"id":ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":-7,"id":ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"result":{"content":[{"type":"text","text":"x"}]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"resul\u0074":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"x":1,"result":{"content":[]},"x":1}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_duplicate_key_in_a_result_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"isError":true,"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"isError":true,"isE\u0072ror":false}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[],"resultType":"complete"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"":1,"":1}}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_duplicate_key_in_meta_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":{"_meta":{"a":1},"content":[],"_meta":{"a":2}}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"_meta":{},"content":[],"\u005fmeta":{}}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":{"surfaceHash":"a","surfaceHash":"b"}}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":{"a/b":1,"a\/b":1}}}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

four_eras!(a_meta_that_is_no_object_is_refused, |harness_era, endpoint_era| async {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":"x"}}"#,
    ];
    bodies_are_refused((harness_era, endpoint_era), &["malformed_answer"], BODIES).await;
});

/// A result of a kind that nobody knows must not look like a success to anybody.
async fn unknown_kinds_are_refused(harness_era: Era) {
    const BODIES: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"weird","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"r\u0065sultType":"weird"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"task","taskId":"1","status":"working","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"Complete","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"","content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":null,"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":1,"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":["complete"],"content":[]}}"#,
    ];
    let reasons = ["malformed_answer", "protocol_violation", "unknown_result_type"];
    bodies_are_refused((harness_era, Era::Modern), &reasons, BODIES).await;
}

#[tokio::test]
async fn an_unknown_result_type_is_no_success_for_a_modern_harness() {
    unknown_kinds_are_refused(Era::Modern).await;
}

#[tokio::test]
async fn an_unknown_result_type_is_no_success_for_a_legacy_harness() {
    unknown_kinds_are_refused(Era::Legacy).await;
}

/// In every other method than those that act, an unknown kind is refused as well.
#[tokio::test]
async fn an_unknown_result_type_of_a_read_is_no_success() {
    for harness_era in [Era::Modern, Era::Legacy] {
        let scene = Scene::open(harness_era, Era::Modern, &[], |_| Reply::close()).await;
        let Scene { endpoint, mut harness, .. } = scene;
        endpoint.set("resources/read", |_| Reply::result(r#"{"resultType":"weird","contents":[]}"#));
        let answer = harness.ask("resources/read", r#"{"uri":"memo://one"}"#).await;
        assert!(answer.is_error(), "{}", answer.text());
    }
}

four_eras!(a_body_that_is_no_utf_8_is_refused, |harness_era, endpoint_era| async {
    let fault = |request: &Recorded| {
        let id = request.id_raw();
        let mut body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"x":""#).into_bytes();
        body.extend_from_slice(b"\xff\xfe\xc3(");
        body.extend_from_slice(b"\"}}");
        if request.param("arguments")["as"] == "event" {
            body.splice(..0, *b"data: ");
            body.extend_from_slice(b"\n\n");
            return Reply::sse(Script::new().raw(body));
        }
        Reply::full(200, "application/json", body)
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for kind in ["json", "event"] {
        scene.fails(&["malformed_answer"], &format!(r#"{{"as":"{kind}"}}"#)).await;
    }
    assert_eq!(scene.broken_calls(), 2);
    scene.unaffected().await;
});

/// 200,000 arrays one in another, where the arguments say.
fn nested(request: &Recorded) -> Reply {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let id = request.id_raw();
    let body = match request.param("arguments")["where"].as_str().unwrap() {
        "result" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"x":{deep}}}}}"#),
        "meta" => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"_meta":{{"x":{deep}}}}}}}"#)
        }
        "error" => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"","data":{deep}}}}}"#)
        }
        "id" => format!(r#"{{"jsonrpc":"2.0","id":{deep},"result":{{}}}}"#),
        "open" => "[".repeat(200_000),
        "objects" => r#"{"a":"#.repeat(200_000),
        _ => deep,
    };
    if request.param("arguments")["as"] == "event" {
        Reply::sse(Script::new().event(body))
    } else {
        Reply::full(200, "application/json", body)
    }
}

four_eras!(two_hundred_thousand_arrays_are_refused, |harness_era, endpoint_era| async {
    let mut scene = Scene::open(harness_era, endpoint_era, &[], nested).await;
    for place in ["result", "meta", "error", "id", "open", "objects", "alone"] {
        for kind in ["json", "event"] {
            let arguments = format!(r#"{{"where":"{place}","as":"{kind}"}}"#);
            scene.fails(&["malformed_answer"], &arguments).await;
        }
    }
    assert_eq!(scene.broken_calls(), 14);
    scene.unaffected().await;
});

fault!(an_error_in_two_ways_is_refused, ["malformed_answer"], None, |request| {
    let id = request.id_raw();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"a","code":-2,"message":"b"}}}}"#
    );
    Reply::full(200, "application/json", body)
});
