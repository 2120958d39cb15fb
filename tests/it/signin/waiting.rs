//! Waiting for the person: what opens, what is said, who waits, and what becomes of it when a process is ended (F07, F09,
//! F10 and F12 of the field's complaints).
#![cfg(unix)]

use std::path::Path;
use std::time::Duration;

use super::{Place, calls, leaves, works};
use crate::support::{EndpointBuilder, Era, Harness, LIMIT, Launch, try_visit};

/// Writes down what it was given, one argument a line, and a line `end`.
const OPENER: &str = "{ printf '%s\\n' \"$@\"; echo end; } >>\"$OPENED\"";

fn with_opener(place: &Place, script: &str) -> Launch {
    place.launch_with_browser().env("OPENED", opened_file(place)).program("xdg-open", script)
}

fn opened_file(place: &Place) -> std::path::PathBuf {
    place.folder.path().join("opened")
}

/// What the opener wrote down so far.
fn opened(place: &Place) -> String {
    std::fs::read_to_string(opened_file(place)).unwrap_or_default()
}

/// Waits until the opener has written that it was called so often.
async fn opened_times(place: &Place, times: usize) {
    let coming = async {
        while opened(place).matches("end\n").count() < times {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, coming).await.expect("nothing was opened");
}

#[tokio::test]
async fn without_a_browser_the_link_is_enough() {
    let forever = "echo $$ >\"$OPENED\"; exec /bin/sleep 600";
    for (script, note) in [(None, true), (Some("exit 3"), true), (Some(forever), false)] {
        let place = Place::new().await;
        let launch = match script {
            None => place.launch_with_browser(),
            Some(script) => with_opener(&place, script),
        };
        let mut harness = launch.start();
        let link = harness.sign_in_link().await;
        if note {
            harness.wait_stderr("no browser could be opened here; open the link yourself").await;
        }
        assert_eq!(place.authority.sign_in(&link).await.0, 200);
        works(&mut harness, Era::Modern).await;
        leaves(harness).await;
        end(&opened(&place)).await;
        place.finish();
    }
}

/// Ends the opener that never ends.
async fn end(pid: &str) {
    if !pid.is_empty() {
        tokio::process::Command::new("kill").arg(pid.trim()).status().await.unwrap();
    }
}

#[tokio::test]
async fn the_link_is_printed_and_opened_once() {
    let place = Place::new().await;
    let mut harness = with_opener(&place, OPENER).start();
    let link = harness.sign_in_link().await;
    opened_times(&place, 1).await;
    assert_eq!(opened(&place), format!("{link}\nend\n"));
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    works(&mut harness, Era::Modern).await;
    leaves(harness).await;
    assert_eq!(opened(&place), format!("{link}\nend\n"));
    place.finish();
}

#[tokio::test]
async fn no_browser_means_none() {
    let place = Place::new().await;
    let mut login = with_opener(&place, OPENER).args(&["--login", "--no-browser"]).spawn();
    let link = login.sign_in_link().await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    assert_eq!(login.finish().await.code, 0);
    assert_eq!(opened(&place), "");
    place.finish();
}

/// What the server names is one argument of the opener, and nothing that a shell reads.
#[tokio::test]
async fn nothing_in_a_link_is_for_a_shell() {
    for address in [
        "https://a.example/$(touch%20$OPENED.x)?a=b&calc",
        "https://a.example/';touch%20$OPENED.x;'",
        "https://a.example/&calc&|calc;calc",
        "https://a.example/\"&calc&\"",
        "https://a.example/-x?--y",
    ] {
        let place = Place::with(
            |authority| authority.metadata(|document| document["authorization_endpoint"] = address.into()),
            |endpoint| endpoint,
        )
        .await;
        let mut login = with_opener(&place, OPENER).arg("--login").spawn();
        let link = login.sign_in_link().await;
        opened_times(&place, 1).await;
        assert_eq!(opened(&place), format!("{link}\nend\n"));
        assert!(link.starts_with("https://a.example/") && !link.contains(['"', '`', ' ', '\\']), "{link}");
        drop(login);
        assert!(!Path::new(&format!("{}.x", opened_file(&place).display())).exists());
        place.finish();
    }
}

#[tokio::test]
async fn an_address_that_is_no_url_is_not_opened() {
    for address in [
        "https://a.example/`touch $OPENED.x`",
        "https://a.example/a b",
        "https://a.example\\@b.example/",
        "-x",
    ] {
        let place = Place::with(
            |authority| authority.metadata(|document| document["authorization_endpoint"] = address.into()),
            |endpoint| endpoint,
        )
        .await;
        let run = with_opener(&place, OPENER).arg("--login").run().await;
        assert_eq!(run.code, 77, "{address}: {}", run.stderr);
        assert!(run.stderr.contains("authorization_endpoint"), "{}", run.stderr);
        assert_eq!(opened(&place), "");
        place.finish();
    }
}

/// Two windows of a harness: one tab, and both go on.
#[tokio::test]
async fn two_starts_at_once_open_one_tab() {
    for era in [Era::Modern, Era::Legacy] {
        let place = Place::with(|authority| authority, EndpointBuilder::many_clients).await;
        let mut first = with_opener(&place, OPENER).start();
        let link = first.sign_in_link().await;
        let mut second = with_opener(&place, OPENER).start();
        assert_eq!(second.sign_in_link().await, link);
        second.wait_stderr("another mcp-hasp process waits for this sign-in").await;
        assert_eq!(place.authority.sign_in(&link).await.0, 200);
        for mut harness in [first, second] {
            works(&mut harness, era).await;
            leaves(harness).await;
        }
        assert_eq!(opened(&place), format!("{link}\nend\n"));
        assert_eq!(place.authority.requests_of("/token").len(), 1);
        place.finish();
    }
}

/// The person says no: who waits for it learns it, and asks nobody again.
#[tokio::test]
async fn a_sign_in_that_was_declined_is_declined_for_all_that_wait() {
    let place = Place::with(|authority| authority, EndpointBuilder::many_clients).await;
    let mut first = with_opener(&place, OPENER).start();
    let link = first.sign_in_link().await;
    let mut second = with_opener(&place, OPENER).start();
    second.sign_in_link().await;
    assert_eq!(place.authority.deny(&link).await.0, 400);
    for mut harness in [first, second] {
        assert_eq!(harness.wait_exit().await.0, 77, "{}", harness.stderr_text());
    }
    assert_eq!(opened(&place).matches("end\n").count(), 1);
    // The next start asks anew.
    let mut third = with_opener(&place, OPENER).start();
    assert_ne!(third.sign_in_link().await, link);
    place.finish();
}

/// The harness gave up while the person was still typing: the tab that is open leads to the next process.
#[tokio::test]
async fn a_restart_goes_on_with_the_tab_that_is_open() {
    for signal in ["KILL", "TERM", "INT", ""] {
        let place = Place::new().await;
        let mut first = with_opener(&place, OPENER).start();
        let link = first.sign_in_link().await;
        opened_times(&place, 1).await;
        let location = place.authority.approve(&link).await;
        match signal {
            "" => first.close_stdin(),
            signal => first.signal(signal).await,
        }
        first.wait_exit().await;
        assert!(try_visit(&location).await.is_none(), "nobody listens in between");

        let mut second = with_opener(&place, OPENER).start();
        assert_eq!(second.sign_in_link().await, link, "{signal}");
        second.wait_stderr("going on with the sign-in that is open in the browser").await;
        let (status, page) = place.authority.visit(&location).await;
        assert_eq!(status, 200, "{page}");
        works(&mut second, Era::Modern).await;
        leaves(second).await;
        assert_eq!(opened(&place), format!("{link}\nend\n"), "{signal}");
        assert_eq!(place.authority.requests_of("/register").len(), 1);
        place.finish();
    }
}

/// The other window takes it over, and nobody sees a difference.
#[tokio::test]
async fn who_waits_takes_over_from_who_is_ended() {
    let place = Place::with(|authority| authority, EndpointBuilder::many_clients).await;
    let mut first = with_opener(&place, OPENER).start();
    let link = first.sign_in_link().await;
    let mut second = with_opener(&place, OPENER).start();
    second.sign_in_link().await;
    first.signal("KILL").await;
    first.wait_exit().await;
    second.wait_stderr("going on with the sign-in that is open in the browser").await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    works(&mut second, Era::Modern).await;
    leaves(second).await;
    assert_eq!(opened(&place).matches("end\n").count(), 1);
    place.finish();
}

/// Its port was taken by somebody else in between: what arrives there cannot reach us, so a new sign-in begins.
#[tokio::test]
async fn a_pending_sign_in_whose_port_is_taken_is_begun_anew() {
    let place = Place::new().await;
    let mut first = place.launch().start();
    let link = first.sign_in_link().await;
    first.signal("KILL").await;
    first.wait_exit().await;
    let redirect = place.authority.requests_of("/register").swap_remove(0);
    let uri = url::Url::parse(redirect.json["redirect_uris"][0].as_str().unwrap()).unwrap();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", uri.port().unwrap())).unwrap();
    let mut second = place.launch().start();
    let other = second.sign_in_link().await;
    assert_ne!(other, link);
    assert_eq!(place.authority.sign_in(&other).await.0, 200);
    works(&mut second, Era::Modern).await;
    leaves(second).await;
    place.finish();
}

/// The contract's 20 seconds: the first message is answered, the sign-in goes on, and the same process serves.
#[tokio::test]
async fn server_discover_is_answered_while_the_person_types() {
    the_first_message_is_answered(Era::Modern, "server/discover", "{}").await;
}

#[tokio::test]
async fn initialize_is_answered_while_the_person_types() {
    let params =
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    the_first_message_is_answered(Era::Legacy, "initialize", params).await;
}

async fn the_first_message_is_answered(era: Era, method: &str, params: &str) {
    let place = Place::new().await;
    let mut harness = place.launch().start();
    let link = harness.sign_in_link().await;
    if era == Era::Modern {
        harness.speak_modern("{}");
    }
    let id = harness.request(method, params).await;
    let answer = harness.answer_within(&id.to_string(), Duration::from_secs(25)).await;
    let error = answer.error();
    assert_eq!(error["data"]["reason"], "sign_in_pending", "{error}");
    assert!(error["message"].as_str().unwrap().contains("--login"), "{error}");
    assert_eq!(harness.sign_in_links().len(), 1);
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    harness.wait_stderr("the surface seen now is pinned").await;
    works(&mut harness, era).await;
    calls(&mut harness).await;
    leaves(harness).await;
    place.finish();
}

#[tokio::test]
async fn an_interrupted_wait_ends_with_130_and_frees_the_port() {
    for args in [&["--login"][..], &[]] {
        let place = Place::new().await;
        let mut harness: Harness = place.launch().args(args).start();
        let link = harness.sign_in_link().await;
        let location = place.authority.approve(&link).await;
        harness.signal("INT").await;
        assert_eq!(harness.wait_exit().await.0, 130, "{}", harness.stderr_text());
        assert!(try_visit(&location).await.is_none());
        assert!(place.record().is_null());
        place.finish();
    }
}

/// Where the browser is on another machine, it is said how to get back here.
#[tokio::test]
async fn it_is_said_how_a_browser_elsewhere_comes_back() {
    for (name, words) in
        [("SSH_CONNECTION", "ssh -L"), ("WSL_DISTRO_NAME", "WSL"), ("KUBERNETES_SERVICE_HOST", "container")]
    {
        let place = Place::new().await;
        let mut login = place.launch().env(name, "x").arg("--login").spawn();
        let link = login.sign_in_link().await;
        let redirect = url::Url::parse(&link).unwrap();
        let redirect =
            redirect.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
        let port = url::Url::parse(&redirect).unwrap().port().unwrap().to_string();
        assert_eq!(place.authority.sign_in(&link).await.0, 200);
        let run = login.finish().await;
        let hint = run.stderr.lines().find(|line| line.contains(words));
        assert!(hint.is_some_and(|hint| hint.contains(&port)), "{}", run.stderr);
        place.finish();
    }
}
