//! Real TLS with a private authority, and the system's proxy variables.

use std::{net::SocketAddr, path::Path};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
};

use crate::support::{Endpoint, Era, Harness, LIMIT, four_eras};

/// A proxy that refuses everything, and tells the test the head of each request.
struct Proxy {
    address: SocketAddr,
    heads: mpsc::UnboundedReceiver<String>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heads) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 1024];
                let read = stream.read(&mut head).await.unwrap_or_default();
                let _ = tell.send(String::from_utf8_lossy(&head[..read]).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await;
            }
        });
        Self { address, heads }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

four_eras!(a_private_authority_is_trusted_with_ca_file, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).sessions().tls().start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--ca-file", text(endpoint.ca_file())]);
    harness.open(harness_era, "{}").await.result();
    let answer = harness.call("echo", r#"{"text":"over TLS"}"#).await;
    assert_eq!(answer.result()["content"][0]["text"], "over TLS");
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    assert_eq!(endpoint.session(), None);
    endpoint.finish();
});

#[tokio::test]
async fn a_name_of_the_certificate_is_as_good_as_its_address() {
    let endpoint = Endpoint::modern().tls().start().await;
    let url = endpoint.url().replace("127.0.0.1", "localhost");
    let mut harness = Harness::start(&url, &["--ca-file", text(endpoint.ca_file())]);
    harness.open(Era::Modern, "{}").await.result();
}

async fn is_refused(endpoint: &Endpoint, url: &str, args: &[&str], words: &[&str]) {
    let mut harness = Harness::start(url, &[&["--quiet"], args].concat());
    let answer = harness.open(Era::Modern, "{}").await;
    assert!(answer.is_error(), "{}", answer.text());
    let (code, _) = harness.wait_exit().await;
    let stderr = harness.stderr_text();
    assert_eq!(code, 69, "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for word in words {
        assert!(stderr.to_lowercase().contains(word), "no {word:?} in {stderr}");
    }
    assert_eq!(endpoint.requests().len(), 0);
}

#[tokio::test]
async fn an_unknown_authority_is_refused_and_the_remedy_is_named() {
    let endpoint = Endpoint::modern().tls().start().await;
    let url = endpoint.url();
    let words = ["certificate", "--ca-file", url.as_str()];
    is_refused(&endpoint, &url, &[], &words).await;
}

#[tokio::test]
async fn another_authority_than_the_given_one_is_refused() {
    let endpoint = Endpoint::modern().tls().start().await;
    let other = Endpoint::modern().tls().start().await;
    let args = ["--ca-file", text(other.ca_file())];
    is_refused(&endpoint, &endpoint.url(), &args, &["certificate", "--ca-file"]).await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    for names in [&["other.example"][..], &["localhost"], &["127.0.0.2"]] {
        let endpoint = Endpoint::modern().tls_for(names).start().await;
        let args = ["--ca-file", text(endpoint.ca_file())];
        is_refused(&endpoint, &endpoint.url(), &args, &["certificate"]).await;
    }
}

#[tokio::test]
async fn https_to_a_port_that_speaks_http_is_refused() {
    let endpoint = Endpoint::modern().start().await;
    let url = endpoint.url().replace("http://", "https://");
    is_refused(&endpoint, &url, &[], &[&url]).await;
}

#[tokio::test]
async fn http_to_a_port_that_speaks_https_is_refused() {
    let endpoint = Endpoint::modern().tls().start().await;
    let url = endpoint.url().replace("https://", "http://");
    is_refused(&endpoint, &url, &[], &[&url]).await;
}

/// Every way in which a proxy can be named.
const VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

four_eras!(a_proxy_is_not_used_for_loopback, |harness_era, endpoint_era| async {
    let mut proxy = Proxy::start().await;
    let secure = Endpoint::era(endpoint_era).tls().start().await;
    let plain = Endpoint::era(endpoint_era).start().await;
    for (endpoint, args) in [(&secure, vec!["--ca-file", text(secure.ca_file())]), (&plain, Vec::new())] {
        for host in ["127.0.0.1", "localhost"] {
            let mut launch = Harness::launch(&endpoint.url().replace("127.0.0.1", host)).args(&args);
            for variable in VARIABLES {
                launch = launch.env(variable, proxy.url());
            }
            let mut harness = launch.start();
            harness.open(harness_era, "{}").await.result();
            harness.call("echo", r#"{"text":"direct"}"#).await.result();
        }
    }
    assert!(proxy.heads.try_recv().is_err(), "the proxy must see nothing");
});

#[tokio::test]
async fn a_proxy_is_used_for_other_hosts() {
    for variable in ["HTTPS_PROXY", "https_proxy"] {
        let mut proxy = Proxy::start().await;
        let mut harness =
            Harness::launch("https://mcp.invalid/mcp").env(variable, proxy.url()).arg("--quiet").start();
        let line =
            tokio::time::timeout(LIMIT, proxy.heads.recv()).await.expect("the proxy saw nothing").unwrap();
        assert!(line.starts_with("CONNECT mcp.invalid:443 "), "{line}");
        assert!(harness.open(Era::Modern, "{}").await.is_error());
        assert_eq!(harness.wait_exit().await.0, 69);
    }
}

#[tokio::test]
async fn a_proxy_is_told_its_own_credentials_and_none_of_the_endpoint() {
    let mut proxy = Proxy::start().await;
    let _harness = Harness::launch("https://mcp.invalid/mcp?key=hunter2")
        .env("HTTPS_PROXY", proxy.url().replace("http://", "http://user:pa%20ss@"))
        .env("MCP_HASP_TOKEN", "hunter2")
        .args(&["--header", "X-Key: hunter2"])
        .start();
    let head = tokio::time::timeout(LIMIT, proxy.heads.recv()).await.expect("the proxy saw nothing").unwrap();
    assert!(head.starts_with("CONNECT mcp.invalid:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic dXNlcjpwYSBzcw==\r\n"), "{head}");
    assert!(!head.contains("hunter2"), "{head}");
}

#[tokio::test]
async fn no_proxy_is_honoured() {
    let mut proxy = Proxy::start().await;
    let mut harness = Harness::launch("https://mcp.invalid/mcp")
        .env("HTTPS_PROXY", proxy.url())
        .env("NO_PROXY", "other.example,mcp.invalid")
        .arg("--quiet")
        .start();
    assert!(harness.open(Era::Modern, "{}").await.is_error());
    assert_eq!(harness.wait_exit().await.0, 69);
    assert!(proxy.heads.try_recv().is_err(), "the proxy must see nothing");
}
