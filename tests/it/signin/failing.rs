//! A machine that fails: nothing is spent that could not be stored, and nothing is lost.
#![cfg(unix)]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::{GOOD, Place, calls, leaves, works};
use crate::support::{Era, Harness, Launch, Run, SignIn, now_in_ms};

/// One line that says which file, and what is wrong with it.
fn is_a_store_failure(run: &Run, words: &str) {
    assert_eq!(run.code, 74, "{}", run.stderr);
    let errors: Vec<&str> = run.stderr.lines().filter(|line| line.contains("error:")).collect();
    assert_eq!(errors.len(), 1, "{}", run.stderr);
    assert!(errors[0].contains(words), "{}", errors[0]);
}

/// Only who may do everything is not held up by a mode.
fn without_privileges(launch: Launch, place: &Place) -> Launch {
    match std::fs::metadata(place.folder.path()).unwrap().uid() {
        0 => launch.by("/usr/bin/setpriv", &["--bounding-set", "-all", "--inh-caps", "-all"]),
        _ => launch,
    }
}

fn mode(place: &Place, mode: u32) {
    std::fs::set_permissions(place.folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Changes the limit of a running program.
#[cfg(target_os = "linux")]
async fn limit_files(harness: &Harness, limit: &str) {
    let pid = harness.pid().to_string();
    let mut prlimit = tokio::process::Command::new("prlimit");
    let done = prlimit.args(["--pid", &pid, &format!("--fsize={limit}:")]).status().await.unwrap();
    assert!(done.success());
}

#[tokio::test]
async fn on_a_full_disk_no_refresh_token_is_spent() {
    let place = Place::new().await;
    let before = place.expired();
    let stored = std::fs::read(place.folder.file()).unwrap();
    let mut harness = place.launch().file_limit(0).start();
    assert_eq!(harness.wait_exit().await.0, 74, "{}", harness.stderr_text());
    let run = Run { code: 74, stdout: String::new(), stderr: harness.stderr_text() };
    is_a_store_failure(&run, "cannot be written: File too large");
    assert_eq!(place.authority.refreshes(), 0);
    assert_eq!(std::fs::read(place.folder.file()).unwrap(), stored);
    // There is room again.
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    leaves(harness).await;
    assert_eq!(place.authority.requests_of("/token")[0].form["refresh_token"], before.refresh);
    place.finish();
}

/// The disk fills up between the moment when it was tried and the answer of the server.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_was_granted_and_cannot_be_stored_is_used_and_stored_later() {
    let place = Place::new().await;
    let before = place.expired();
    place.authority.hold_tokens();
    let mut harness = place.launch().file_limit(1_000_000).start();
    place.authority.arrived("/token", 0).await;
    limit_files(&harness, "0").await;
    place.authority.release_tokens();
    works(&mut harness, Era::Modern).await;
    harness.wait_stderr("the renewed sign-in cannot be stored yet").await;
    assert_eq!(place.record()["tokens"]["refresh"], before.refresh);
    calls(&mut harness).await;
    limit_files(&harness, "unlimited").await;
    leaves(harness).await;
    let after = place.record()["tokens"]["refresh"].as_str().unwrap().to_owned();
    assert_ne!(after, before.refresh);
    assert!(place.authority.renews(&after));
    assert_eq!(place.authority.refreshes(), 1);
    place.finish();
}

/// In the middle of a session: the calls are answered, and go on when there is room.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_disk_that_fills_up_and_is_cleared_ends_no_session() {
    let place = Place::new().await;
    let sign_in = SignIn::issued(&place.authority, &place.url(), "").times(3000, 600);
    place.folder.write(&[&sign_in]);
    let mut harness = place.launch().file_limit(1_000_000).start();
    works(&mut harness, Era::Modern).await;
    limit_files(&harness, "0").await;
    place.authority.expire_everything();
    let answer = harness.call("echo", "{}").await;
    assert_eq!(answer.json()["error"]["data"]["reason"], "sign_in_store", "{}", answer.text());
    assert_eq!(place.authority.refreshes(), 0);
    limit_files(&harness, "unlimited").await;
    // It is tried again after a pause, not with every call.
    loop {
        let answer = harness.call("echo", r#"{"text":"a"}"#).await;
        if answer.text().contains(GOOD) {
            break;
        }
        assert_eq!(answer.json()["error"]["data"]["reason"], "sign_in_store", "{}", answer.text());
    }
    leaves(harness).await;
    assert_eq!(place.authority.refreshes(), 1);
    place.finish();
}

#[tokio::test]
async fn on_a_full_disk_nobody_is_asked_to_sign_in() {
    let place = Place::new().await;
    let run = place.launch().arg("--login").file_limit(0).run().await;
    is_a_store_failure(&run, "cannot be written: File too large");
    assert!(!run.stderr.contains("code_challenge="), "{}", run.stderr);
    place.finish();
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_serves_as_long_as_the_token_lives() {
    let place = Place::new().await;
    let _ = place.stored();
    mode(&place, 0o500);
    let mut harness = without_privileges(place.launch(), &place).start();
    works(&mut harness, Era::Modern).await;
    leaves(harness).await;
    mode(&place, 0o700);

    let _ = place.expired();
    let stored = place.record();
    mode(&place, 0o500);
    let mut harness = without_privileges(place.launch(), &place).start();
    assert_eq!(harness.wait_exit().await.0, 74, "{}", harness.stderr_text());
    let run = Run { code: 74, stdout: String::new(), stderr: harness.stderr_text() };
    is_a_store_failure(&run, "Permission denied");
    for option in ["--login", "--logout"] {
        let run = without_privileges(place.launch().arg(option), &place).run().await;
        is_a_store_failure(&run, "Permission denied");
        assert!(!run.stderr.contains("code_challenge="), "{}", run.stderr);
    }
    mode(&place, 0o700);
    assert_eq!(place.record(), stored);
    assert_eq!((place.authority.refreshes(), place.authority.revoked().len()), (0, 0));
    place.finish();
}

/// The sign-in was stored by a clock that was a day ahead: what it says of the token is not believed for long.
#[tokio::test]
async fn a_clock_that_was_set_back_loses_nothing() {
    let place = Place::new().await;
    let tomorrow = now_in_ms() + 24 * 3_600_000;
    let sign_in = SignIn::issued(&place.authority, &place.url(), "").change(|record| {
        record["signed_in_at"] = tomorrow.into();
        record["tokens"]["obtained_at"] = tomorrow.into();
        record["tokens"]["expires_at"] = (tomorrow + 3_600_000).into();
    });
    place.authority.expire(&sign_in.access);
    place.folder.write(&[&sign_in]);
    let mut harness = place.launch().start();
    works(&mut harness, Era::Modern).await;
    assert!(harness.sign_in_links().is_empty());
    leaves(harness).await;
    assert_eq!(place.authority.refreshes(), 1);
    let obtained = place.record()["tokens"]["obtained_at"].as_u64().unwrap();
    assert!(obtained <= now_in_ms());
    place.finish();
}
