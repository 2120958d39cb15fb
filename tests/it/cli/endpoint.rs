//! Which endpoint, and how it is reached.

use super::{FINE, accepted, file, path, refused, run};
use crate::support::{Endpoint, Era, Harness};

#[tokio::test]
async fn a_url_is_needed() {
    run::<&str>(&[], &[]).await.failed(64, &["--url", "MCP_HASP_URL"]);
    run(&["--url"], &[]).await.failed(64, &["--url"]);
    run(&["--url", ""], &[]).await.failed(64, &["--url"]);
    run::<&str>(&[], &[("MCP_HASP_URL", "")]).await.failed(64, &["--url"]);
}

#[tokio::test]
async fn https_is_accepted_anywhere_and_http_on_loopback() {
    for url in [
        "https://a.example/mcp",
        "https://a.example:8443/a/b?c=d",
        "http://127.0.0.1:9/mcp",
        "http://127.200.3.4:9/",
        "http://[::1]:9/mcp",
        "http://localhost:9/mcp",
        "HTTP://LOCALHOST:9/mcp",
    ] {
        let run = run(&["--url", url], &[]).await;
        assert_eq!(run.code, 0, "{url}: {}", run.stderr);
    }
}

#[tokio::test]
async fn http_to_another_host_is_a_bad_command_line() {
    for url in [
        "http://a.example/mcp",
        "http://127.0.0.1.a.example/",
        "http://localhost.a.example/",
        "http://alocalhost/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://128.0.0.1/",
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        run(&["--url", url], &[]).await.failed(64, &["--url", "https"]);
    }
}

#[tokio::test]
async fn what_is_no_web_address_is_a_bad_command_line() {
    for url in [
        "ftp://a.example/",
        "file:///etc/passwd",
        "a.example/mcp",
        "javascript:alert(1)",
        "https://",
        "ws://127.0.0.1/",
        "//a",
    ] {
        run(&["--url", url], &[]).await.failed(64, &["--url"]);
    }
}

#[tokio::test]
async fn a_password_in_the_url_is_a_bad_command_line_and_is_not_shown() {
    for url in ["https://user:hunter2@a.example/", "http://hunter2@127.0.0.1/", "https://:hunter2@a.example/"]
    {
        let run = run(&["--url", url], &[]).await;
        run.failed(64, &["--url"]);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
}

#[tokio::test]
async fn a_fragment_in_the_url_is_a_bad_command_line() {
    run(&["--url", "https://a.example/mcp#part"], &[]).await.failed(64, &["--url", "fragment"]);
    run(&["--url", "https://a.example/mcp#"], &[]).await.failed(64, &["--url", "fragment"]);
}

#[tokio::test]
async fn the_url_comes_from_the_environment_where_no_flag_is_given() {
    let endpoint = Endpoint::modern().start().await;
    let other = run::<&str>(&[], &[("MCP_HASP_URL", FINE)]).await;
    assert!(other.stderr.contains(FINE), "{}", other.stderr);
    // the harness gives the flag
    let mut harness = Harness::launch(&endpoint.url()).env("MCP_HASP_URL", "http://127.0.0.1:1/no").start();
    harness.open(Era::Modern, "{}").await.result();
}

#[tokio::test]
async fn a_bad_url_in_the_environment_is_a_bad_command_line() {
    run::<&str>(&[], &[("MCP_HASP_URL", "http://a.example/")]).await.failed(64, &["https"]);
}

#[tokio::test]
async fn a_query_of_the_url_is_sent_and_not_shown() {
    let endpoint = Endpoint::modern().query("key=hunter2&x=%20").start().await;
    let mut harness = Harness::start(&endpoint.url(), &["-vv"]);
    harness.open(Era::Modern, "{}").await.result();
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    let stderr = harness.stderr_text();
    assert!(stderr.contains(endpoint.url().split('?').next().unwrap()), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
    endpoint.finish();
}

#[tokio::test]
async fn a_ca_file_that_cannot_be_used_is_an_input_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let cut = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUFu\n";
    let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let no_base64 = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for content in [cut, no_der, no_base64, key, "", "hello\n", "\0\0"] {
        let bad = file(content);
        let run = run(&["--url", FINE, "--ca-file", path(&bad)], &[]).await;
        assert_eq!(run.code, 66, "{content:?}: {}", run.stderr);
        run.failed(66, &["--ca-file", path(&bad)]);
    }
    let not_text = file([0xff, 0xfe, 0x00]);
    refused(&["--ca-file", path(&not_text)], 66, &["--ca-file"]).await;
    let folder = folder.path().to_str().unwrap();
    refused(&["--ca-file", folder], 66, &["--ca-file", folder]).await;
    refused(&["--ca-file", "/nowhere/roots.pem"], 66, &["--ca-file", "/nowhere/roots.pem"]).await;
}

#[tokio::test]
async fn a_limit_that_is_no_size_is_a_bad_command_line() {
    for limit in ["0", "-1", "1.5", "many", "", "32MiB", "99999999999999999999999999"] {
        refused(&[&format!("--max-message-bytes={limit}")], 64, &["--max-message-bytes"]).await;
    }
    accepted(&["--max-message-bytes", "1048576"], &[]).await;
}
