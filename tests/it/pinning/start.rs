//! What is expected before the start, and what a first run says.

use super::{CHANGED, DECLARED, NOT_PINNED, flag, printed_hash, quiet, refuses, works};
use crate::{
    opened::leave,
    support::{Endpoint, Era, Harness, Reply, four_eras},
};

const WRONG: &str = "hasp1:sha256:0000000000000000000000000000000000000000000000000000000000000000";

four_eras!(
    a_first_run_prints_both_hashes_and_the_flag_and_pasted_the_next_start_passes,
    |harness_era, endpoint_era| async {
        let endpoint = quiet(endpoint_era).meta(DECLARED).start().await;
        let mut harness = Harness::start(&endpoint.url(), &[]);
        assert!(!harness.open(harness_era, "{}").await.is_error());
        works(&mut harness).await;
        leave(&mut harness).await;
        let stderr = harness.stderr_text();
        let hash = flag(&stderr);
        assert!(hash.starts_with("hasp1:sha256:") && hash.len() == 13 + 64, "{hash}");
        assert!(stderr.contains("sha256:one"), "the declared one is not named: {stderr}");
        for pins in [vec!["--expect-hash", hash.as_str()], vec!["--expect-hash", "sha256:one"]] {
            let mut harness = Harness::start(&endpoint.url(), &pins);
            assert!(!harness.open(harness_era, "{}").await.is_error());
            works(&mut harness).await;
            leave(&mut harness).await;
            let stderr = harness.stderr_text();
            assert!(stderr.contains("pinned by --expect-hash"), "what is pinned by which means: {stderr}");
        }
    }
);

four_eras!(with_another_hash_nothing_is_served_and_the_line_names_both, |harness_era, endpoint_era| async {
    let endpoint = quiet(endpoint_era).meta(DECLARED).start().await;
    let right = printed_hash(&endpoint).await;
    let both_right = format!("{right},sha256:one");
    let other = "sha256:two";
    // the flags, the environment, what the line names
    let cases: Vec<(Vec<&str>, String, Vec<&str>)> = vec![
        (vec![WRONG], String::new(), vec![WRONG, &right]),
        (vec![other], String::new(), vec![other, "sha256:one"]),
        (vec![], WRONG.into(), vec![WRONG, &right]),
        (vec![], other.into(), vec![other, "sha256:one"]),
        (vec![&right, other], String::new(), vec![other, "sha256:one"]),
        (vec![WRONG, "sha256:one"], String::new(), vec![WRONG, &right]),
        (vec![], format!("{right},{other}"), vec![other, "sha256:one"]),
        (vec![], format!("{WRONG},sha256:one"), vec![WRONG, &right]),
        (vec![WRONG, other], String::new(), vec![WRONG, &right, other, "sha256:one"]),
        // one given each way, one of them wrong, whichever
        (vec![&right], other.into(), vec![other, "sha256:one"]),
        (vec!["sha256:one"], WRONG.into(), vec![WRONG, &right]),
        (vec![WRONG], both_right.clone(), vec![WRONG, &right]),
    ];
    for (flags, environment, named) in cases {
        let mut launch = Harness::launch(&endpoint.url());
        for hash in &flags {
            launch = launch.arg("--expect-hash").arg(hash);
        }
        if !environment.is_empty() {
            launch = launch.env("MCP_HASP_EXPECT_HASH", &environment);
        }
        let mut harness = launch.start();
        let stderr = refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
        let line = stderr.lines().find(|line| line.contains(NOT_PINNED)).unwrap_or_default();
        for name in named {
            assert!(line.contains(name), "{flags:?} {environment}: {name} is not named: {stderr}");
        }
    }
    let mut harness =
        Harness::launch(&endpoint.url()).env("MCP_HASP_EXPECT_HASH", format!(" {both_right} ")).start();
    assert!(!harness.open(harness_era, "{}").await.is_error(), "{}", harness.stderr_text());
    works(&mut harness).await;
});

four_eras!(an_endpoint_that_declares_nothing_is_not_what_was_expected, |harness_era, endpoint_era| async {
    let endpoint = quiet(endpoint_era).start().await;
    let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", "sha256:one"]);
    let stderr = refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
    assert!(stderr.contains("sha256:one") && stderr.contains("declares no hash"), "{stderr}");
});

four_eras!(a_changed_description_at_the_first_start_is_not_served, |harness_era, endpoint_era| async {
    let endpoint = Endpoint::era(endpoint_era).sessions().start().await;
    let right = printed_hash(&endpoint).await;
    endpoint.set_tools(CHANGED);
    let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", &right]);
    refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
    assert_eq!(endpoint.session(), None, "the session is given back");
    assert!(endpoint.requests_of("tools/call").is_empty());
});

four_eras!(a_declared_hash_counts_under_a_plain_and_a_namespaced_key, |harness_era, endpoint_era| async {
    for key in ["surfaceHash", "com.example/surfaceHash", "io.example.surfaceHash"] {
        let endpoint = quiet(endpoint_era).meta(&format!(r#""{key}":"abc""#)).start().await;
        let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", "abc"]);
        assert!(!harness.open(harness_era, "{}").await.is_error(), "{key}: {}", harness.stderr_text());
        works(&mut harness).await;
        let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", "abd"]);
        refuses(&mut harness, harness_era, Some("surface_changed"), 2).await;
    }
});

four_eras!(an_unclear_declared_hash_is_2_with_a_pin_and_69_without, |harness_era, endpoint_era| async {
    for meta in [
        r#""surfaceHash":"""#,
        r#""surfaceHash":7"#,
        r#""surfaceHash":null"#,
        r#""surfaceHash":["abc"]"#,
        r#""x/surfaceHash":{}"#,
        r#""surfaceHash":"abc","x/surfaceHash":"abc""#,
    ] {
        let endpoint = quiet(endpoint_era).meta(meta).start().await;
        for (pin, reason, exit) in [
            (vec!["--expect-hash", "abc"], Some("surface_changed"), 2),
            (vec!["--expect-hash", WRONG], Some("surface_changed"), 2),
            (vec![], None, 69),
        ] {
            let mut harness = Harness::start(&endpoint.url(), &pin);
            let stderr = refuses(&mut harness, harness_era, reason, exit).await;
            assert!(stderr.contains("declared"), "{meta}: {stderr}");
        }
    }
});

four_eras!(
    pages_that_declare_different_hashes_are_2_with_a_pin_and_69_without,
    |harness_era, endpoint_era| async {
        for (first, second) in [("abc", "abd"), ("", "abc"), ("abc", "")] {
            let endpoint = quiet(endpoint_era).start().await;
            endpoint.set("tools/list", move |request| {
            let is_first = request.param("cursor").is_null();
            let (name, more, hash) =
                if is_first { ("echo", r#","nextCursor":"2""#, first) } else { ("other", "", second) };
            let meta = if hash.is_empty() {
                String::new()
            } else {
                format!(r#","_meta":{{"surfaceHash":"{hash}"}}"#)
            };
            Reply::result(format!(
                r#"{{"resultType":"complete","tools":[{{"name":"{name}","inputSchema":{{"type":"object"}}}}]{more},"ttlMs":0,"cacheScope":"private"{meta}}}"#
            ))
        });
            for (pin, reason, exit) in
                [(vec!["--expect-hash", "abc"], Some("surface_changed"), 2), (vec![], None, 69)]
            {
                let mut harness = Harness::start(&endpoint.url(), &pin);
                let stderr = refuses(&mut harness, harness_era, reason, exit).await;
                assert!(stderr.contains("different hashes"), "{stderr}");
            }
        }
    }
);

// The other lists and the opening are read at start as well.
four_eras!(lists_that_declare_different_hashes_are_not_served, |harness_era, endpoint_era| async {
    for method in ["prompts/list", "resources/templates/list"] {
        let endpoint = quiet(endpoint_era).meta(r#""surfaceHash":"abc""#).start().await;
        let member = if method == "prompts/list" { "prompts" } else { "resourceTemplates" };
        endpoint.set(method, move |_| {
            Reply::result(format!(
                r#"{{"resultType":"complete","{member}":[],"ttlMs":0,"cacheScope":"private","_meta":{{"surfaceHash":"abd"}}}}"#
            ))
        });
        for (pin, reason, exit) in
            [(vec!["--expect-hash", "abc"], Some("surface_changed"), 2), (vec![], None, 69)]
        {
            let mut harness = Harness::start(&endpoint.url(), &pin);
            refuses(&mut harness, harness_era, reason, exit).await;
        }
    }
});

#[tokio::test]
async fn a_hash_that_cannot_be_one_is_a_wrong_command_line() {
    let endpoint = quiet(Era::Modern).start().await;
    for hash in
        ["hasp1:sha512:00", "hasp2:sha256:00", &WRONG[..76], &format!("{WRONG}0"), &WRONG.replace('0', "A")]
    {
        let mut harness = Harness::start(&endpoint.url(), &["--expect-hash", hash]);
        assert_eq!(harness.wait_exit().await.0, 64, "{hash}: {}", harness.stderr_text());
    }
    assert!(endpoint.requests().is_empty());
}
