//! Notifications on the way of a call: progress and log messages.

use super::{CAPABILITIES, cases, one_line, value, with, without};
use crate::support::{Endpoint, Era, Harness, Reply, Script, four_eras};

const DONE: &str = r#"{"resultType":"complete","content":[]}"#;

async fn progress_arrives(harness_era: Era, endpoint_era: Era, tokens: &[&str]) {
    let endpoint = Endpoint::era(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    for (n, (case, text)) in cases("progress").into_iter().enumerate() {
        for token in tokens {
            let sent = text.clone();
            endpoint.set("tools/call", move |request| {
                let token = format!(r#""progressToken":{}"#, request.param("_meta")["progressToken"]);
                let params = if n % 2 == 0 { with(&sent, &token, "") } else { with(&sent, "", &token) };
                Reply::sse(Script::new().notification("notifications/progress", &params).result(DONE))
            });
            let params = format!(r#"{{"name":"echo","arguments":{{}},"_meta":{{"progressToken":{token}}}}}"#);
            let id = harness.request("tools/call", &params).await;
            let received = harness.next_of("notifications/progress").await.member("params").unwrap();
            harness.answer(id).await.result();
            let cut = ["\"progressToken\""];
            assert_eq!(without(&received, &cut), without(&one_line(&text), &cut), "{case}");
            assert_eq!(value(&received, "progressToken"), *token, "{case}");
        }
    }
}

four_eras!(progress_arrives_as_it_was_sent_with_the_harness_own_token, |harness_era, endpoint_era| async {
    let long = format!("\"{}\"", "token ".repeat(100));
    let tokens = ["0", "\"0\"", "-1", "9007199254740993", "\"\"", "\"🚀\"", &long];
    progress_arrives(harness_era, endpoint_era, &tokens).await;
});

four_eras!(a_progress_token_comes_back_in_its_own_spelling, |harness_era, endpoint_era| async {
    let tokens = [r#""a\u0062 \/ \ud83d\ude80""#, "18446744073709551615", "123456789012345678901234567890"];
    progress_arrives(harness_era, endpoint_era, &tokens).await;
});

four_eras!(log_messages_arrive_as_they_were_sent, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).capabilities(CAPABILITIES).start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(harness_era, "{}").await.result();
    let mut params = r#"{"name":"echo","arguments":{}}"#;
    if harness_era == Era::Modern {
        params = r#"{"name":"echo","arguments":{},"_meta":{"io.modelcontextprotocol/logLevel":"debug"}}"#;
    } else {
        harness.ask("logging/setLevel", r#"{"level":"debug"}"#).await.result();
    }
    for (case, text) in cases("message") {
        let sent = text.clone();
        endpoint.set("tools/call", move |_| {
            Reply::sse(Script::new().notification("notifications/message", &sent).result(DONE))
        });
        let id = harness.request("tools/call", params).await;
        let received = harness.next_of("notifications/message").await.member("params").unwrap();
        harness.answer(id).await.result();
        assert_eq!(received, one_line(&text), "{case}");
    }
});
