//! Tokens and headers: where they come from, and that their values are shown nowhere.

use super::{FINE, accepted, file, path, refused, run};
use crate::support::{Endpoint, Era, Harness};

const SECRET: &str = "hunter2";

/// Opens a session; the endpoint refuses every other token than that one.
async fn opens_with(token: &str, args: &[&str], environment: &[(&str, &str)]) {
    let endpoint = Endpoint::modern().expect_bearer(token).start().await;
    let mut launch = Harness::launch(&endpoint.url()).args(args);
    for (name, value) in environment {
        launch = launch.env(name, value);
    }
    let mut harness = launch.start();
    harness.open(Era::Modern, "{}").await.result();
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    assert!(!harness.stderr_text().contains(token), "{}", harness.stderr_text());
    endpoint.finish();
}

#[tokio::test]
async fn the_token_comes_from_the_flag_then_from_mcp_hasp_token_then_from_playerthree_token() {
    let both = [("MCP_HASP_TOKEN", "from-hasp"), ("PLAYERTHREE_TOKEN", "from-playerthree")];
    opens_with("from-flag", &["--token", "from-flag"], &both).await;
    opens_with("from-hasp", &[], &both).await;
    opens_with("from-playerthree", &[], &both[1..]).await;
    let token = file("from-file\n");
    opens_with("from-file", &["--token-file", path(&token)], &both).await;
}

#[tokio::test]
async fn no_token_means_no_authorization_header() {
    let endpoint = Endpoint::modern().start().await;
    let mut harness = Harness::start(&endpoint.url(), &[]);
    harness.open(Era::Modern, "{}").await.result();
    assert!(endpoint.requests().iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn blanks_around_the_token_in_a_file_do_not_count() {
    for content in ["from-file", "from-file\r\n", "\n  from-file \n\n"] {
        let token = file(content);
        opens_with("from-file", &["--token-file", path(&token)], &[]).await;
    }
}

#[tokio::test]
async fn a_token_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    refused(&["--token-file", folder], 66, &["--token-file", folder]).await;
    refused(&["--token-file", "/nowhere/token"], 66, &["--token-file", "/nowhere/token"]).await;
}

#[tokio::test]
async fn a_token_file_without_a_token_is_refused_and_its_content_is_not_shown() {
    for content in ["", "\n", "hunter2 hunter2", "hunter2\nX-A: b", "hünter2"] {
        let token = file(content);
        let run = run(&["--url", FINE, "--token-file", path(&token)], &[]).await;
        assert!([64, 66].contains(&run.code), "{content:?}: {}", run.stderr);
        run.failed(run.code, &["--token-file"]);
        assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
    }
    let token = file([0xff, 0xfe]);
    let run = run(&["--url", FINE, "--token-file", path(&token)], &[]).await;
    assert!([64, 66].contains(&run.code), "{}", run.stderr);
    run.failed(run.code, &["--token-file"]);
}

#[tokio::test]
async fn a_token_that_cannot_stand_in_a_header_is_a_bad_command_line_and_is_not_shown() {
    for token in ["hunter2 hunter2", "hunter2\r\nX-A: b", "hunter2\u{1}", "hünter2hunter2", ""] {
        let run = refused(&["--token", token], 64, &["--token"]).await;
        assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
    }
    let bad = [("MCP_HASP_TOKEN", "hunter2\r\nX-A: b")];
    let run = run(&["--url", FINE], &bad).await;
    run.failed(64, &["MCP_HASP_TOKEN"]);
    assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
}

/// The values with which the header arrived, in the first request and in the last.
async fn arrive(args: &[&str], environment: &[(&str, &str)], name: &str, expected: &[&str]) {
    let endpoint = Endpoint::legacy().sessions().start().await;
    let mut launch = Harness::launch(&endpoint.url()).arg("-vv").args(args);
    for (name, value) in environment {
        launch = launch.env(name, value);
    }
    let mut harness = launch.start();
    harness.open(Era::Legacy, "{}").await.result();
    harness.call("echo", r#"{"text":"x"}"#).await.result();
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    endpoint.arrived("DELETE", 0).await;
    for request in endpoint.requests() {
        let values = request.headers.iter().filter(|(key, _)| key == name);
        let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, expected, "{} {}", request.verb, request.method());
    }
    for value in expected {
        assert!(value.is_empty() || !harness.stderr_text().contains(value), "{}", harness.stderr_text());
    }
}

#[tokio::test]
async fn a_header_goes_along_with_every_request() {
    arrive(&["--header", "X-Key: k3y"], &[], "x-key", &["k3y"]).await;
    arrive(&["--header", "X-Key:   k3y  "], &[], "x-key", &["k3y"]).await;
    arrive(&["--header", "X-Key:k3y:with:colons"], &[], "x-key", &["k3y:with:colons"]).await;
    arrive(&["--header", "X-Key: k3y-1", "--header", "x-key: k3y-2"], &[], "x-key", &["k3y-1", "k3y-2"])
        .await;
}

#[tokio::test]
async fn a_variable_in_a_header_is_read_once() {
    let environment = [("V", "Bearer t0k"), ("NESTED", "${V}")];
    arrive(&["--header", "X-A:${V}"], &environment, "x-a", &["Bearer t0k"]).await;
    arrive(&["--header", "X-A: <${V}|${V}>"], &environment, "x-a", &["<Bearer t0k|Bearer t0k>"]).await;
    arrive(&["--header", "X-A: ${NESTED}"], &environment, "x-a", &["${V}"]).await;
    arrive(&["--header", "X-A: $V $ {V} $$"], &environment, "x-a", &["$V $ {V} $$"]).await;
    arrive(&["--header", "X-A: $${V}"], &environment, "x-a", &["${V}"]).await;
}

#[tokio::test]
async fn an_authorization_header_may_be_given_by_hand() {
    let endpoint = Endpoint::modern().expect_bearer("by-hand").start().await;
    let mut harness = Harness::launch(&endpoint.url())
        .env("AUTH", "Bearer by-hand")
        .args(&["--header", "Authorization:${AUTH}"])
        .start();
    harness.open(Era::Modern, "{}").await.result();
    endpoint.finish();
}

#[tokio::test]
async fn headers_come_from_a_file_too() {
    let headers = file("# for the board\r\nX-A: ${V}\r\n\r\n  X-B:br4vo\n");
    let args = ["--header-file", path(&headers)];
    arrive(&args, &[("V", "v4lue")], "x-a", &["v4lue"]).await;
    arrive(&args, &[("V", "v4lue")], "x-b", &["br4vo"]).await;
    refused(&["--header-file", "/nowhere/headers"], 66, &["--header-file", "/nowhere/headers"]).await;
    refused(&["--header-file", "/"], 66, &["--header-file"]).await;
}

#[tokio::test]
async fn an_unset_variable_is_named_together_with_its_header() {
    refused(&["--header", "X-Key: ${NOPE}"], 64, &["NOPE", "X-Key"]).await;
    refused(&["--header", "X-Key: hunter2${NOPE}"], 64, &["NOPE", "X-Key"]).await;
    let empty = run(&["--url", FINE, "--header", "X-Key: ${EMPTY}"], &[("EMPTY", "")]).await;
    empty.failed(64, &["EMPTY", "X-Key"]);
    refused(&["--header", "X-Key: ${OPEN"], 64, &["X-Key"]).await;
    accepted(&["--header", "X-Key: ${SET}"], &[("SET", "x")]).await;
}

#[tokio::test]
async fn a_header_that_is_none_is_a_bad_command_line_and_its_value_is_not_shown() {
    for header in [
        "X-A hunter2",
        "X A: hunter2",
        ": hunter2",
        "X-A: hunter2\r\nX-B: hunter2",
        "X-A: \u{7f}hunter2",
        "Ü: hunter2",
    ] {
        let run = refused(&["--header", header], 64, &["--header"]).await;
        assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
    }
    let bad = [("V", "hunter2\r\nX-B: hunter2")];
    let run = run(&["--url", FINE, "--header", "X-A: ${V}"], &bad).await;
    run.failed(64, &["X-A"]);
    assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
}

#[tokio::test]
async fn a_header_that_the_shell_took_apart_is_explained() {
    for args in [
        &["--header", "X-A:", "hunter2"][..],
        &["--header", "Authorization:", "Bearer", "hunter2"],
        &["--header", "X-A:", "hunter2", "-v"],
    ] {
        let run = refused(args, 64, &["--header", "quote"]).await;
        assert!(!run.stderr.contains(SECRET), "what may be a secret is not shown: {}", run.stderr);
    }
}

/// It is the endpoint that names its authorization server: the user has to say that it is the right one, before anything is
/// sent.
#[tokio::test]
async fn a_client_secret_needs_the_issuer_of_a_public_endpoint() {
    let secret = file("s3cret\n");
    for mode in [&["--login"][..], &[]] {
        let args = [
            "--url",
            "https://127.0.0.1.example:9/mcp",
            "--client-id",
            "a",
            "--client-secret-file",
            path(&secret),
        ];
        let run = run(&[&args, mode].concat(), &[]).await;
        run.failed(64, &["--client-secret-file", "--issuer", "first sign-in"]);
    }
}
