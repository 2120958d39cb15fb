//! The support code, tested against itself: no program between.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, rustls};

use crate::support::{Endpoint, Era, Fate, Harness, Inbox, Reply, four_eras};

fn head(endpoint: &Endpoint, headers: &str, body: &str) -> (String, String) {
    let address = endpoint.url().replace("http://", "").replace("/mcp", "");
    let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    let length = body.len();
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{accept}{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    (address, text)
}

async fn post(endpoint: &Endpoint, headers: &str, body: &str) -> String {
    let (address, text) = head(endpoint, headers, body);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

const DISCOVER_HEADERS: &str = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: server/discover\r\n";
const DISCOVER: &str = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

four_eras!(a_correct_opening_is_no_violation, |_harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).sessions().start().await;
    let discovered = post(&endpoint, DISCOVER_HEADERS, DISCOVER).await;
    if endpoint_era == Era::Modern {
        assert!(discovered.contains("supportedVersions"), "{discovered}");
        assert!(discovered.contains("mcp-session-id: session-0"), "{discovered}");
    } else {
        assert!(discovered.starts_with("HTTP/1.1 400"), "{discovered}");
        let initialized = post(&endpoint, "", INITIALIZE).await;
        assert!(
            initialized.contains(r#""id":"a","result":{"protocolVersion":"2025-11-25""#),
            "{initialized}"
        );
    }
    endpoint.finish();
});

#[tokio::test]
async fn each_broken_rule_is_named() {
    let endpoint = Endpoint::modern().start().await;
    let answer = post(&endpoint, "Cookie: a=b\r\nMcp-Method: tools/list\r\n", DISCOVER).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let violations = endpoint.take_violations().join("\n");
    for word in ["a cookie", "MCP-Protocol-Version", "Mcp-Method"] {
        assert!(violations.contains(word), "{word} is not in {violations}");
    }
}

#[tokio::test]
#[should_panic(expected = "the client broke 1 rule")]
async fn an_endpoint_that_saw_a_broken_rule_fails_its_test() {
    let endpoint = Endpoint::modern().start().await;
    post(&endpoint, &format!("{DISCOVER_HEADERS}Origin: http://x\r\n"), DISCOVER).await;
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let endpoint = Endpoint::modern().on("server/discover", |_| Reply::hang()).start().await;
    let (address, text) = head(&endpoint, DISCOVER_HEADERS, DISCOVER);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let order = endpoint.arrived("server/discover", 0).await.order;
    drop(stream);
    endpoint.client_closed(order).await;
}

#[tokio::test]
async fn a_cut_body_is_shorter_than_announced_and_the_endpoint_can_restart() {
    let mut endpoint =
        Endpoint::modern().on("server/discover", |_| Reply::cut_json("0123456789", 4)).start().await;
    let answer = post(&endpoint, DISCOVER_HEADERS, DISCOVER).await;
    assert!(answer.contains("content-length: 10"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n0123"), "{answer}");
    assert_eq!(endpoint.fate_of(0).await, Fate::CutByEndpoint);
    endpoint.stop().await;
    endpoint.start_again().await;
    endpoint.set("server/discover", |_| Reply::status(503));
    assert!(post(&endpoint, DISCOVER_HEADERS, DISCOVER).await.starts_with("HTTP/1.1 503"));
}

#[tokio::test]
async fn a_legacy_question_is_answered_by_a_post() {
    let endpoint = Endpoint::legacy().version("2025-06-18").start().await;
    post(&endpoint, "", INITIALIZE).await;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":"ask-1","result":{"action":"decline"}}"#;
    let version = "MCP-Protocol-Version: 2025-06-18\r\n";
    let (called, accepted) = tokio::join!(post(&endpoint, version, call), async {
        endpoint.arrived("tools/call", 0).await;
        post(&endpoint, version, answer).await
    });
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    assert!(called.contains("elicitation/create") && called.contains(r#"\"decline\""#), "{called}");
    endpoint.finish();
}

#[tokio::test]
async fn a_listen_stream_is_acknowledged_written_on_and_ended() {
    let endpoint = Endpoint::modern().start().await;
    let listen = DISCOVER.replace("server/discover", "subscriptions/listen");
    let listen = listen.replace(r#""params":{"#, r#""params":{"notifications":{"toolsListChanged":true},"#);
    let headers = DISCOVER_HEADERS.replace("server/discover", "subscriptions/listen");
    let (stream, ()) = tokio::join!(post(&endpoint, &headers, &listen), async {
        endpoint.listens(1).await;
        endpoint.notify_listens("notifications/tools/list_changed", "").await;
        endpoint.end_listens().await;
    });
    let order = ["subscriptions/acknowledged", "tools/list_changed", r#""id":1,"result""#];
    let places = order.map(|word| stream.find(word).unwrap_or_else(|| panic!("{word} is not in {stream}")));
    assert!(places.is_sorted(), "{stream}");
    assert_eq!(endpoint.fate_of(0).await, Fate::Answered);
}

#[tokio::test]
async fn the_certificate_is_good_for_those_who_trust_its_root() {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};

    let endpoint = Endpoint::modern().tls().start().await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(endpoint.ca_file()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = endpoint.url().replace("https://", "").replace("/mcp", "");
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
}

#[test]
fn an_answer_counts_once_and_only_for_a_request_that_is_open() {
    let line = |text: &str| text.as_bytes().to_vec();
    let inbox = Inbox::default();
    inbox.sent(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    inbox.received(line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    assert!(inbox.broken().is_empty());
    inbox.received(line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    inbox.received(line(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#));
    inbox.received(line("warming up"));
    assert_eq!(inbox.broken().len(), 3);
}

#[tokio::test]
async fn a_program_whose_harness_leaves_at_once_ends_well() {
    let endpoint = Endpoint::modern().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0, "{}", harness.stderr_text());
}
