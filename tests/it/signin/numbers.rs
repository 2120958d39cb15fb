//! The proof by numbers: many processes and short tokens, and processes that are killed at any moment of a renewal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Place, calls, leaves, works};
use crate::support::{AuthorityBuilder, EndpointBuilder, Era, now_in_ms};

const PROCESSES: usize = 8;
/// Seconds that a token lives.
const LIFE: u64 = 2;
/// Seconds that the processes are at work.
const AT_WORK: u64 = 20;
/// How often one of them calls.
const PACE: Duration = Duration::from_millis(100);

/// The server revokes everything when a spent refresh token comes back, so one mistake of one process would be the end of
/// all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_share_tokens_of_two_seconds() {
    let place =
        Arc::new(Place::with(|authority| authority.token_life(LIFE), EndpointBuilder::many_clients).await);
    let _ = place.expired();
    let begun = Instant::now();
    let processes: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let place = place.clone();
            tokio::spawn(async move {
                let mut harness = place.launch().start();
                works(&mut harness, Era::Modern).await;
                let mut pace = tokio::time::interval(PACE);
                let mut served = 0;
                while begun.elapsed() < Duration::from_secs(AT_WORK) {
                    pace.tick().await;
                    calls(&mut harness).await;
                    served += 1;
                }
                assert!(harness.sign_in_links().is_empty());
                leaves(harness).await;
                served
            })
        })
        .collect();
    let mut served = 0;
    for process in processes {
        served += process.await.unwrap();
    }
    assert!(served > PROCESSES, "{served}");
    let refreshes = place.authority.requests().into_iter().filter(|request| request.is_refresh());
    let spent: Vec<String> = refreshes.map(|request| request.form["refresh_token"].clone()).collect();
    let mut distinct = spent.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), spent.len(), "a refresh token was sent twice");
    assert_eq!(place.authority.spent_reuses(), 0);
    // A token is renewed when three quarters of its life are over, and no sooner.
    let most = begun.elapsed().as_millis() / u128::from(LIFE * 1000 * 3 / 4) + 1;
    assert!((5..=most).contains(&(spent.len() as u128)), "{} refreshes, {most} at most", spent.len());
    Arc::into_inner(place).unwrap().finish();
}

const KILLS: usize = 200;

/// A number that nobody can foresee, below `end`.
fn any_below(end: u64) -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0) % end
}

/// `kill -9` while a renewal runs. What the server rotated and the program could not write any more is lost, as it must be;
/// everything else goes on without a browser.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_renewal_leaves_a_whole_store() {
    let place = Place::with(AuthorityBuilder::allow_reuse, EndpointBuilder::many_clients).await;
    let mut now_stored = place.expired().refresh;
    let (mut untouched, mut renewed, mut lost) = (0, 0, 0);
    for round in 0..KILLS {
        let before = place.authority.refreshes();
        let mut harness = place.launch().start();
        harness.request("initialize", INITIALIZE).await;
        // Half of them around the start, half of them around the answer of the server.
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_micros(any_below(12_000))).await;
        } else {
            place.authority.arrived("/token", before).await;
            tokio::time::sleep(Duration::from_micros(any_below(3_000))).await;
        }
        harness.signal("KILL").await;
        harness.wait_exit().await;
        // It is JSON, and it is the one sign-in, with one of the two tokens that it may have.
        let record = place.record();
        let stored =
            record["tokens"]["refresh"].as_str().unwrap_or_else(|| panic!("round {round}: {record}"));
        match (stored == now_stored, place.authority.renews(stored)) {
            (true, true) => untouched += 1,
            (false, true) => renewed += 1,
            (true, false) => lost += 1,
            (false, false) => panic!("round {round}: a token that is stored and was never given out"),
        }
        if stored == now_stored && !place.authority.renews(stored) {
            now_stored = place.expired().refresh;
            continue;
        }
        stored.clone_into(&mut now_stored);
        if round % 10 == 9 {
            let mut harness = place.launch().start();
            works(&mut harness, Era::Modern).await;
            assert!(harness.sign_in_links().is_empty(), "round {round}");
            leaves(harness).await;
            place.record()["tokens"]["refresh"].as_str().unwrap().clone_into(&mut now_stored);
        }
        expire(&place);
    }
    assert!(untouched > 0 && renewed > 0, "the moments are not spread: {untouched} {renewed} {lost}");
    let names: Vec<_> =
        std::fs::read_dir(place.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("damaged")), "{names:?}");
    place.authority.take_violations();
    place.finish();
}

/// The stored access token is over, here and there.
fn expire(place: &Place) {
    place.authority.expire_everything();
    place.folder.change_record(&place.url(), |record| {
        record["tokens"]["obtained_at"] = (now_in_ms() - 7_200_000).into();
        record["tokens"]["expires_at"] = (now_in_ms() - 3_600_000).into();
    });
}

const INITIALIZE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test-harness","version":"1.0.0"}}"#;
