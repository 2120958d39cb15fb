//! The opening: what the endpoint says about itself reaches the harness in the form of the harness's era.

use super::{cases, value};
use crate::support::{Endpoint, Era, Harness, Reply, four_eras};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

four_eras!(what_the_endpoint_says_of_itself_arrives_as_it_was_sent, |harness_era, endpoint_era| async {
    let (kind, method) = match endpoint_era {
        Era::Modern => ("discover", "server/discover"),
        Era::Legacy => ("initialize", "initialize"),
    };
    for (case, text) in cases(kind) {
        let sent = text.clone();
        let endpoint =
            Endpoint::era(endpoint_era).on(method, move |_| Reply::result(sent.clone())).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        let received = harness.open(harness_era, "{}").await.result_raw();
        for key in ["instructions", "x-unknown"] {
            assert_eq!(value(&received, key), value(&text, key), "{case}: {key}");
        }
        let (ours, theirs) = (value(&received, "capabilities"), value(&text, "capabilities"));
        for key in ["logging", "completions", "experimental"] {
            assert_eq!(value(&ours, key), value(&theirs, key), "{case}: {key}");
        }
        let meta = value(&text, "_meta");
        assert_eq!(
            value(&value(&received, "_meta"), "example.com/a"),
            value(&meta, "example.com/a"),
            "{case}"
        );
        assert_eq!(server_info(harness_era, &received), server_info(endpoint_era, &text), "{case}");
    }
});

fn server_info(era: Era, result: &str) -> String {
    match era {
        Era::Modern => value(&value(result, "_meta"), SERVER_INFO),
        Era::Legacy => value(result, "serverInfo"),
    }
}
