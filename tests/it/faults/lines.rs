//! What a harness may write: every line gets what it deserves, and the next one is served.

use crate::support::{Answer, Endpoint, Era, Harness, LEGACY, four_eras};

/// A session in which lines can be written by hand.
struct Session {
    endpoint: Endpoint,
    harness: Harness,
    modern: bool,
}

impl Session {
    async fn open(harness_era: Era, endpoint_era: Era) -> Self {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        harness.open(harness_era, "{}").await.result();
        Self { endpoint, harness, modern: harness_era == Era::Modern }
    }

    /// Members of `_meta` that make a request of this harness's era, without the braces.
    fn meta(&self) -> &'static str {
        if self.modern {
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#
        } else {
            ""
        }
    }

    /// A line that calls `echo`. `{M}` in the text stands for the members of `_meta`.
    fn line(&self, text: &str) -> String {
        text.replace("{M}", self.meta())
    }

    /// The line is refused with one of the codes; the error has the id, or `null` where it need not be readable.
    async fn refused(&mut self, line: &[u8], codes: &[i64], id: Option<&str>) -> Answer {
        let before = self.endpoint.requests_of("tools/call").len();
        let shown = String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
        self.harness.send_unreadable(line, id.unwrap_or("\"nobody\"")).await;
        let answer = match id {
            Some(id) => self.harness.answer_to(id).await,
            None => self.harness.answer_to("null").await,
        };
        let code = answer.error()["code"].as_i64().unwrap();
        assert!(codes.contains(&code), "{shown}: none of {codes:?}: {}", answer.text());
        self.served(&shown).await;
        let after = self.endpoint.requests_of("tools/call").len();
        assert_eq!(after, before + 1, "{shown}: the line reached the endpoint");
        answer
    }

    async fn served(&mut self, after: &str) {
        let answer = self.harness.call("echo", r#"{"text":"next"}"#).await;
        assert_eq!(answer.result()["content"][0]["text"], "next", "after {after}");
    }
}

const PARSE_ERROR: &[i64] = &[-32700];
const INVALID: &[i64] = &[-32600];
const MALFORMED: &[i64] = &[-32700, -32600, -32602];

four_eras!(a_line_that_is_no_json_gets_a_parse_error, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for line in [
        "hello",
        "{",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping""#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"{'jsonrpc':'2.0'}"#,
        "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":\"\t\"}}",
        "\0",
        r#"{"jsonrpc":"2.0","method":"x","params":{"a":01}}"#,
        "[",
    ] {
        session.refused(line.as_bytes(), PARSE_ERROR, None).await;
    }
});

four_eras!(a_line_that_is_no_utf_8_gets_a_parse_error, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    session.refused(b"\xff\xfe", PARSE_ERROR, None).await;
    session
        .refused(b"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":\"\xc3(\"}}", PARSE_ERROR, None)
        .await;
    // a surrogate written as if UTF-8 had them
    session
        .refused(
            b"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":\"\xed\xa0\x80\"}}",
            PARSE_ERROR,
            None,
        )
        .await;
});

four_eras!(json_that_is_no_message_is_an_invalid_request, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for line in
        ["7", "\"text\"", "null", "true", "{}", r#"{"jsonrpc":"2.0"}"#, r#"{"jsonrpc":"2.0","method":7}"#]
    {
        session.refused(line.as_bytes(), INVALID, None).await;
    }
    for line in [
        r#"{"jsonrpc":"1.0","id":"bad","method":"ping"}"#,
        r#"{"id":"bad","method":"ping"}"#,
        r#"{"jsonrpc":2.0,"id":"bad","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"bad"}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":null}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":["ping"]}"#,
    ] {
        session.refused(line.as_bytes(), INVALID, Some("\"bad\"")).await;
    }
});

four_eras!(params_that_are_no_object_are_refused, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for params in ["[]", "7", "\"x\"", "null", "[{}]"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{params}}}"#);
        session.refused(line.as_bytes(), MALFORMED, Some("\"bad\"")).await;
    }
});

four_eras!(an_id_that_is_neither_string_nor_integer_is_refused, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for id in ["null", "1.5", "1e3", "true", "[]", "{}"] {
        let text =
            r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","_meta":{{M}}}}"#;
        let line = session.line(text).replace("ID", id);
        session.harness.send_unreadable(line.as_bytes(), id).await;
        let answer = session.harness.answer_or_null(id).await;
        assert_eq!(answer.error()["code"], -32600, "{line}: {}", answer.text());
        session.served(&line).await;
    }
});

four_eras!(an_array_is_refused_where_no_batches_were_agreed_on, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    let call =
        r#"{"jsonrpc":"2.0","id":"in a batch","method":"tools/call","params":{"name":"echo","_meta":{{M}}}}"#;
    let call = session.line(call);
    for line in ["[]".to_owned(), format!("[{call}]"), format!("[{call},{call}]"), "[1]".to_owned()] {
        session.refused(line.as_bytes(), INVALID, None).await;
    }
});

/// 2025-03-26 is the one revision that has batches.
async fn batches_work(endpoint_era: Era) {
    let endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.initialize("2025-03-26", "{}").await.result();
    let call = |id: &str, text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
        )
    };
    let note = r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{}}"#;
    let line = format!("[{}, {note} ,{},\t7]", call("\"one\"", "1"), call("2000", "2"));
    harness.send_line(line.as_bytes()).await;
    assert_eq!(harness.answer_to("\"one\"").await.result()["content"][0]["text"], "1");
    assert_eq!(harness.answer_to("2000").await.result()["content"][0]["text"], "2");
    assert_eq!(harness.answer_to("null").await.error()["code"], -32600, "the 7 is no message");
    harness.send_line(b"[]").await;
    assert_eq!(harness.answer_to("null").await.error()["code"], -32600, "an empty batch is no message");
    harness.send_line(b"[").await;
    assert_eq!(harness.answer_to("null").await.error()["code"], -32700);
    assert_eq!(harness.call("echo", r#"{"text":"alone"}"#).await.result()["content"][0]["text"], "alone");
    assert_eq!(endpoint.requests_of("tools/call").len(), 3, "no batch goes upstream");
}

#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_message_by_message_from_a_modern_endpoint() {
    batches_work(Era::Modern).await;
}

#[tokio::test]
async fn a_batch_of_2025_03_26_is_answered_message_by_message_from_a_legacy_endpoint() {
    batches_work(Era::Legacy).await;
}

four_eras!(a_duplicate_key_in_a_request_is_refused, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for text in [
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"echo","name":"ask","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"echo","n\u0061me":"ask","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"_meta":{{M}},"name":"echo","arguments":{},"arguments":{"text":"x"}}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"_meta":{{M}},"name":"echo","_meta":{{M}}}}"#,
    ] {
        let line = session.line(text);
        session.refused(line.as_bytes(), MALFORMED, Some("\"bad\"")).await;
    }
    let comma = if session.modern { "," } else { "" };
    for twice in [r#""x":1,"x":1"#, r#""progressToken":1,"progressToken":2"#, r#""x":1,"\u0078":1"#] {
        let line = session.line(&format!(
            r#"{{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{{"name":"echo","_meta":{{{twice}{comma}{{M}}}}}}}}"#
        ));
        session.refused(line.as_bytes(), MALFORMED, Some("\"bad\"")).await;
    }
});

four_eras!(a_duplicate_key_in_the_envelope_of_a_request_is_refused, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for text in [
        r#"{"jsonrpc":"2.0","id":"bad","id":"bad","method":"tools/call","params":{"name":"echo","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"ping","method":"tools/call","params":{"name":"echo","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"ask","_meta":{{M}}},"params":{"name":"echo","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call","p\u0061rams":{"name":"ask"},"params":{"name":"echo","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":"bad","method":"tools/call","params":{"name":"echo","_meta":{{M}}}}"#,
        r#"{"jsonrpc":"2.0","x":1,"id":"bad","method":"tools/call","params":{"name":"echo","_meta":{{M}}},"x":1}"#,
    ] {
        let line = session.line(text);
        session.harness.send_line(line.as_bytes()).await;
        let answer = session.harness.answer_or_null("\"bad\"").await;
        let code = answer.error()["code"].as_i64().unwrap();
        assert!([-32700, -32600].contains(&code), "{line}: {}", answer.text());
        session.served(&line).await;
    }
    let echoes = session.endpoint.requests_of("tools/call").len();
    assert_eq!(echoes, 6, "none of the lines may reach the endpoint");
});

four_eras!(two_hundred_thousand_arrays_in_a_request_are_refused, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let call = session.line(
        r#"{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{"name":"echo","arguments":{"x":DEEP},"_meta":{{M}}}}"#,
    );
    let lines = [
        call.replace("DEEP", &deep),
        call.replace("\"deep\"", &deep),
        deep.clone(),
        "[".repeat(200_000),
        r#"{"a":"#.repeat(200_000),
        format!("{}{}", r#"{"a":"#.repeat(200_000), "}".repeat(200_000)),
    ];
    for (n, line) in lines.iter().enumerate() {
        session.harness.send_unreadable(line.as_bytes(), "\"deep\"").await;
        let answer = session.harness.answer_or_null("\"deep\"").await;
        assert_eq!(answer.error()["code"], -32700, "line {n}: {}", answer.text());
        session.served("nested arrays").await;
    }
    assert_eq!(session.endpoint.requests_of("tools/call").len(), lines.len());
});

four_eras!(a_hundred_arrays_in_a_request_pass, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    let deep = "[".repeat(100) + &"]".repeat(100);
    let answer = session.harness.call("echo", &format!(r#"{{"text":"deep","x":{deep}}}"#)).await;
    assert_eq!(answer.result()["content"][0]["text"], "deep");
    let sent = session.endpoint.arrived("tools/call", 0).await.body;
    assert!(String::from_utf8_lossy(&sent).contains(&deep));
});

four_eras!(
    windows_line_ends_a_byte_order_mark_and_blank_lines_are_taken,
    |harness_era, endpoint_era| async {
        let endpoint = Endpoint::era(endpoint_era).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        let opening = if harness_era == Era::Modern {
            r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#.to_owned()
        } else {
            format!(
                r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"w","version":"1"}}}}}}"#
            )
        };
        harness.send_unreadable(format!("\u{feff}{opening}\r").as_bytes(), "0").await;
        harness.answer_to("0").await.result();
        if harness_era == Era::Modern {
            harness.speak_modern("{}");
        } else {
            harness.send_line(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r").await;
        }
        for blank in ["", "\r", "  ", "\t \r"] {
            harness.send_line(blank.as_bytes()).await;
        }
        harness.send_line(b"").await;
        // the ids of the harness begin at 0 again, which is free
        let answer = harness.call("echo", r#"{"text":"Grüße 👩‍👩‍👧 e\u0301"}"#).await;
        assert_eq!(answer.result()["content"][0]["text"], "Grüße 👩‍👩‍👧 e\u{301}");
        let errors = harness.lines().iter().filter(|line| line.get("error").is_some()).count();
        assert_eq!(errors, 0, "a blank line is no message and gets no answer");
        assert!(!answer.line.contains(&b'\r'));
    }
);

four_eras!(notifications_and_answers_that_fit_nothing_are_passed_over, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{"x":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never asked"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":"never asked","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
    ] {
        session.harness.send_line(line.as_bytes()).await;
        session.served(line).await;
    }
    let errors = session.harness.lines().iter().filter(|line| line.get("error").is_some()).count();
    assert_eq!(errors, 0);
});

four_eras!(ids_come_back_byte_for_byte, |harness_era, endpoint_era| async {
    let mut session = Session::open(harness_era, endpoint_era).await;
    for id in [
        "0",
        "\"\"",
        "-1",
        "\"1\"",
        "9007199254740993",
        "18446744073709551615",
        "123456789012345678901234567890",
        "\"a\\u0062c\"",
        "\"\\/\\\\\\\"\\b\\f\\n\\r\\t\"",
        "\"\u{2028}👾\"",
        "\"\\ud83d\\udc7e\"",
        "-0",
    ] {
        let text = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"},"_meta":{{M}}}}"#;
        let line = session.line(text).replace("ID", id);
        session.harness.send_line(line.as_bytes()).await;
        let answer = session.harness.answer_to(id).await;
        assert_eq!(answer.id_raw(), id);
        answer.result();
    }
    for call in session.endpoint.requests_of("tools/call") {
        assert!(call.json["id"].is_u64(), "upstream ids are the program's own integers: {}", call.id_raw());
    }
});
