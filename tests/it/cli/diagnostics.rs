//! What is said on stderr, how loud and in which form; help and version; what is not there yet.

use std::ffi::OsStr;

use serde_json::Value;

use super::{FINE, refused, run};
use crate::support::{Endpoint, Era, Harness, Reply, four_eras};

/// A session with a bit of everything; yields stderr.
async fn stderr_of_a_session(harness_era: Era, endpoint_era: Era, args: &[&str]) -> (String, String) {
    let endpoint = Endpoint::era(endpoint_era).sessions().start().await;
    let mut harness = Harness::start(&endpoint.url(), args);
    harness.open(harness_era, "{}").await.result();
    harness.call("echo", r#"{"text":"x"}"#).await.result();
    harness.send_line(b"no json").await;
    harness.answer_to("null").await;
    endpoint.set("tools/call", |_| Reply::status(500));
    harness.call("echo", "{}").await.error();
    harness.close_stdin();
    assert_eq!(harness.wait_exit().await.0, 0);
    (endpoint.url(), harness.stderr_text())
}

four_eras!(quiet_is_silent_while_all_is_well, |harness_era, endpoint_era| async {
    let (_, stderr) = stderr_of_a_session(harness_era, endpoint_era, &["--quiet"]).await;
    assert_eq!(stderr, "");
});

four_eras!(the_endpoint_is_named_at_start, |harness_era, endpoint_era| async {
    let (url, stderr) = stderr_of_a_session(harness_era, endpoint_era, &[]).await;
    assert!(stderr.lines().next().is_some_and(|line| line.contains(&url)), "{stderr}");
    assert!(stderr.lines().all(|line| line.starts_with("mcp-hasp: ")), "{stderr}");
});

four_eras!(each_v_says_more, |harness_era, endpoint_era| async {
    let mut lines = Vec::new();
    for args in [&[][..], &["-v"], &["-vv"]] {
        lines.push(stderr_of_a_session(harness_era, endpoint_era, args).await.1.lines().count());
    }
    assert!(lines.is_sorted() && lines[0] < lines[2], "{lines:?}");
    let twice = stderr_of_a_session(harness_era, endpoint_era, &["-v", "-v"]).await.1;
    assert_eq!(twice.lines().count(), lines[2]);
});

four_eras!(json_lines_are_json, |harness_era, endpoint_era| async {
    for loud in ["-v", "-vv"] {
        let args = ["--log-format", "json", loud];
        let (url, stderr) = stderr_of_a_session(harness_era, endpoint_era, &args).await;
        assert!(stderr.contains(&url), "{stderr}");
        for line in stderr.lines() {
            let json: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            assert!(json.is_object(), "{line}");
        }
    }
});

#[tokio::test]
async fn a_failed_start_is_json_too() {
    let endpoint = Endpoint::legacy()
        .on("server/discover", |_| Reply::status(404))
        .on("initialize", |_| Reply::status(404))
        .start()
        .await;
    let mut harness = Harness::start(&endpoint.url(), &["--log-format", "json", "--quiet"]);
    assert!(harness.open(Era::Legacy, "{}").await.is_error());
    assert_eq!(harness.wait_exit().await.0, 69);
    let stderr = harness.stderr_text();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let json: Value = serde_json::from_str(&stderr).unwrap();
    assert!(json.to_string().contains(&endpoint.url()), "{json}");
}

#[tokio::test]
async fn text_is_the_form_where_none_is_given() {
    let (plain, text) =
        (run(&["--url", FINE], &[]).await, run(&["--url", FINE, "--log-format", "text"], &[]).await);
    assert_eq!(plain.stderr, text.stderr);
}

#[tokio::test]
async fn an_unknown_form_is_a_bad_command_line() {
    refused(&["--log-format", "yaml"], 64, &["--log-format"]).await;
}

#[tokio::test]
async fn help_goes_to_stdout_and_names_every_option() {
    for flag in ["--help", "-h"] {
        let run =
            run(&[flag], &[("MCP_HASP_TOKEN", "hunter2"), ("MCP_HASP_URL", "https://a.example/?hunter2")])
                .await;
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        for option in [
            "--url",
            "MCP_HASP_URL",
            "--token",
            "--token-file",
            "MCP_HASP_TOKEN",
            "--header",
            "--header-file",
            "--ca-file",
            "--max-message-bytes",
            "--allow-sampling",
            "--allow-roots",
            "-v",
            "--quiet",
            "--log-format",
            "--help",
            "--version",
        ] {
            assert!(run.stdout.contains(option), "{flag} does not name {option}:\n{}", run.stdout);
        }
        assert!(!run.stdout.contains("hunter2"), "{}", run.stdout);
    }
    let long = run(&["--help"], &[]).await.stdout;
    for code in ["0", "1", "2", "64", "66", "69", "74", "77", "130"] {
        assert!(long.contains(code), "--help does not explain exit code {code}");
    }
}

#[tokio::test]
async fn the_version_goes_to_stdout() {
    for flag in ["--version", "-V"] {
        let run = run(&[flag], &[]).await;
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        assert_eq!(run.stdout, format!("mcp-hasp {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[tokio::test]
async fn what_nobody_knows_is_a_bad_command_line() {
    for args in [
        &["--nope"][..],
        &["-x"],
        &["--tokn", "x"],
        &["--quiet=yes"],
        &["--url", FINE],
        &["--max-message-bytes"],
    ] {
        refused(args, 64, &[args[0].split('=').next().unwrap()]).await;
    }
    refused(&["stray"], 64, &[]).await;
    refused(&["--", "stray"], 64, &[]).await;
    refused(&["--channels"], 64, &["--channels"]).await;
}

#[cfg(unix)]
#[tokio::test]
async fn an_argument_that_is_no_text_is_a_bad_command_line() {
    use std::os::unix::ffi::OsStrExt as _;
    for bytes in
        [&b"--url=https://\xff.example/"[..], b"--\xff", b"\xff", b"--token=\xff\xfe", b"--header=X-A: \xff"]
    {
        let args = [OsStr::new("--url"), OsStr::new(FINE), OsStr::from_bytes(bytes)];
        run(if bytes.starts_with(b"--url") { &args[2..] } else { &args }, &[]).await.failed(64, &[]);
    }
}

#[tokio::test]
async fn what_is_not_built_yet_says_so() {
    refused(&["--print-config", "claude"], 64, &["--print-config", "not built yet"]).await;
}
