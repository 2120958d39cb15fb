//! What the browser brings back, and what of it is believed (F20 of the field's complaints).

use super::Place;
use crate::support::{AuthorityBuilder, Run};

const WORDS: &str = "the words of somebody else";

async fn come_back(authority: impl FnOnce(AuthorityBuilder) -> AuthorityBuilder) -> (Place, Run, String) {
    let place = Place::with(authority, |endpoint| endpoint).await;
    let mut login = place.launch().arg("--login").spawn();
    let link = login.sign_in_link().await;
    let (_, page) = place.authority.sign_in(&link).await;
    let run = login.finish().await;
    (place, run, page)
}

/// Nothing was exchanged, nothing is stored, and the page says so.
fn is_refused((place, run, page): (Place, Run, String), words: &[&str]) {
    assert_eq!(run.code, 77, "{}", run.stderr);
    assert!(page.contains("You are not signed in") && page.contains("The sign-in failed"), "{page}");
    for word in words {
        assert!(run.stderr.contains(word), "no {word:?} in {}", run.stderr);
    }
    assert!(place.authority.requests_of("/token").is_empty());
    assert!(place.record().is_null());
    assert!(!run.stderr.contains(WORDS) && !page.contains(WORDS), "{}", run.stderr);
    place.finish();
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_not_used() {
    for announced in [true, false] {
        let come =
            come_back(|authority| authority.announces_iss(announced).iss("https://other.example")).await;
        let issuer = come.0.authority.issuer();
        is_refused(come, &["\"https://other.example\"", &format!("\"{issuer}\""), "RFC 9207"]);
    }
}

/// Compared as text, for two spellings may be two servers.
#[tokio::test]
async fn an_issuer_with_another_spelling_is_another_issuer() {
    let come = come_back(|authority| {
        authority.redirect(|pairs| {
            for (name, value) in pairs {
                if name == "iss" {
                    value.push('/');
                }
            }
        })
    })
    .await;
    is_refused(come, &["RFC 9207"]);
}

#[tokio::test]
async fn an_error_of_another_issuer_is_not_shown() {
    let come = come_back(|authority| {
        authority
            .iss("https://other.example")
            .authorize_error(|_| Some(("access_denied".into(), WORDS.into())))
    })
    .await;
    is_refused(come, &["https://other.example"]);
}

#[tokio::test]
async fn an_announced_issuer_that_is_missing_is_no_answer() {
    is_refused(come_back(|authority| authority.sends_iss(false)).await, &["RFC 9207", "announces"]);
}

#[tokio::test]
async fn an_issuer_that_was_not_announced_may_be_named_or_left_out() {
    for sends in [true, false] {
        let (place, run, _) = come_back(|authority| authority.announces_iss(false).sends_iss(sends)).await;
        assert_eq!(run.code, 0, "{}", run.stderr);
        place.finish();
    }
}

/// The server's words are shown as what they are, without what could move the terminal.
#[tokio::test]
async fn an_error_is_shown_safely() {
    let (place, run, page) = come_back(|authority| {
        authority.authorize_error(|_| {
            Some(("temporarily_unavailable".into(), "<b>try\u{1b}[2J \u{202e}again</b>\n\"later\"".into()))
        })
    })
    .await;
    assert_eq!(run.code, 77, "{}", run.stderr);
    assert!(run.stderr.contains("temporarily_unavailable"), "{}", run.stderr);
    assert!(!run.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", run.stderr);
    assert_eq!(run.stderr.lines().filter(|line| line.contains("error:")).count(), 1);
    assert!(
        page.contains("The sign-in failed") && !page.contains("temporarily") && !page.contains("later"),
        "{page}"
    );
    place.finish();
}

#[tokio::test]
async fn a_redirect_without_a_code_is_no_sign_in() {
    let (place, run, page) =
        come_back(|authority| authority.redirect(|pairs| pairs.retain(|(name, _)| name != "code"))).await;
    assert_eq!(run.code, 77, "{}", run.stderr);
    assert!(run.stderr.contains("neither a code nor an error") && page.contains("not signed in"));
    place.finish();
}

/// The wrong state: the person sees that nothing was done, and the sign-in goes on.
#[tokio::test]
async fn whoever_does_not_know_the_state_ends_nothing() {
    let place = Place::new().await;
    let mut login = place.launch().arg("--login").spawn();
    let link = login.sign_in_link().await;
    let location = place.authority.approve(&link).await;
    let (callback, _) = location.split_once('?').unwrap();
    let state = url::Url::parse(&location).unwrap();
    let state = state.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    for wrong in [
        callback.to_owned(),
        format!("{callback}?code=x"),
        format!("{callback}?code=x&state=wrong"),
        format!("{callback}?error=access_denied&state="),
        format!("{callback}?code=x&state={state}&state={state}"),
        callback.replace("/callback", "/"),
        callback.replace("/callback", "/favicon.ico"),
        location.replace("/callback", "/callback/"),
        location.replace("/callback", "/other"),
    ] {
        let (status, page) = place.authority.visit(&wrong).await;
        assert!((400..500).contains(&status) && page.contains("Nothing was done"), "{wrong}: {status}");
    }
    assert_eq!(place.authority.visit(&location).await.0, 200);
    assert_eq!(login.finish().await.code, 0);
    place.finish();
}
