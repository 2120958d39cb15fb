//! The first sign-in, from the proxy and ahead of time, and signing out.

use super::{Place, leaves, works};
use crate::support::{Era, Harness, Page, SignIn, try_visit};

#[tokio::test]
async fn a_proxy_signs_in_and_serves_and_a_restart_needs_no_browser() {
    for era in [Era::Modern, Era::Legacy] {
        let place = Place::new().await;
        let mut harness = place.launch().start();
        let link = harness.sign_in_link().await;
        let (status, page) = place.authority.sign_in(&link).await;
        assert_eq!(status, 200, "{page}");
        assert!(page.contains("You are signed in"), "{page}");
        works(&mut harness, era).await;
        leaves(harness).await;
        let mut harness = place.launch().start();
        works(&mut harness, era).await;
        assert!(harness.sign_in_links().is_empty());
        leaves(harness).await;
        assert_eq!(place.authority.requests_of("/register").len(), 1);
        assert_eq!(place.authority.refreshes(), 0);
        place.finish();
    }
}

#[tokio::test]
async fn a_sign_in_ahead_of_time_says_where_it_is_stored() {
    let place = Place::new().await;
    let mut login = place.launch().arg("--login").spawn();
    let link = login.sign_in_link().await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    let run = login.finish().await;
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let last = run.stderr.lines().last().unwrap();
    assert!(last.contains(&place.folder.file().display().to_string()), "{last}");
    assert_eq!(place.record()["issuer"], place.authority.issuer());
    let mut harness = place.launch().start();
    works(&mut harness, Era::Legacy).await;
    leaves(harness).await;
    place.finish();
}

#[tokio::test]
async fn signing_in_again_takes_the_registration_and_another_token() {
    let place = Place::new().await;
    for _ in 0..2 {
        let mut login = place.launch().arg("--login").spawn();
        let link = login.sign_in_link().await;
        assert_eq!(place.authority.sign_in(&link).await.0, 200);
        assert_eq!(login.finish().await.code, 0);
    }
    assert_eq!(place.authority.requests_of("/register").len(), 1);
    place.finish();
}

#[tokio::test]
async fn signing_out_revokes_both_tokens_and_forgets_them() {
    let place = Place::new().await;
    let sign_in = place.stored();
    let run = place.launch().arg("--logout").run().await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(place.authority.revoked(), [sign_in.refresh.clone(), sign_in.access.clone()]);
    assert!(place.record().is_null());
    let run = place.launch().arg("--logout").run().await;
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("there is no sign-in"), "{}", run.stderr);
    place.finish();
}

#[tokio::test]
async fn signing_out_forgets_also_where_revoking_fails_and_says_so() {
    let place = Place::new().await;
    place.authority.set("/revoke", |_| (503, vec![], "{}".into()));
    let _ = place.stored();
    let run = place.launch().arg("--logout").run().await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("could not be revoked") && run.stderr.contains("503"), "{}", run.stderr);
    assert!(place.record().is_null());
    place.finish();
}

#[tokio::test]
async fn what_is_stored_is_listed_without_a_secret() {
    let place = Place::new().await;
    let alive = SignIn::issued(&place.authority, &place.url(), "");
    let query = SignIn::issued(&place.authority, "https://b.example/mcp?key=hunter2", "").no_expiry();
    let ended = SignIn::issued(&place.authority, "https://c.example/", "").change(|record| {
        record.as_object_mut().unwrap().remove("tokens");
    });
    place.folder.write(&[&alive, &query, &ended]);
    let run = Harness::launch_bare().arg("--status").config_dir(place.folder.path()).run().await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    let issuer = place.authority.issuer();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.stdout);
    let line = |start: &str| *lines.iter().find(|line| line.starts_with(start)).unwrap();
    assert!(line(&format!("{}  issuer {issuer}  expires 20", place.url())).ends_with("Z, renewed by itself"));
    assert!(line("https://b.example/mcp?…  issuer ").contains("no known expiry"));
    assert!(line("https://c.example/").contains("ended: sign in again with --login"));
    for secret in ["hunter2", &alive.access, &alive.refresh, &query.access] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret));
    }
    place.finish();
}

#[tokio::test]
async fn a_declined_sign_in_ends_the_start_with_77() {
    let place = Place::new().await;
    let mut harness = place.launch().start();
    let link = harness.sign_in_link().await;
    let (status, page) = place.authority.deny(&link).await;
    assert_eq!(status, 400);
    assert!(page.contains("You are not signed in") && page.contains("declined"), "{page}");
    assert_eq!(harness.wait_exit().await.0, 77);
    assert!(harness.stderr_text().contains("declined in the browser"), "{}", harness.stderr_text());
    assert!(place.record().is_null());
    place.finish();
}

/// A redirect is good for one sign-in: afterwards nobody listens there.
#[tokio::test]
async fn a_second_visit_finds_nobody() {
    let place = Place::new().await;
    let mut harness = place.launch().start();
    let link = harness.sign_in_link().await;
    let location = place.authority.approve(&link).await;
    assert_eq!(place.authority.visit(&location).await.0, 200);
    works(&mut harness, Era::Modern).await;
    let second: Option<Page> = try_visit(&location).await;
    assert!(second.is_none(), "{second:?}");
    leaves(harness).await;
    place.finish();
}
