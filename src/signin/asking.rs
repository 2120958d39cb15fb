//! Asking the user, once for all processes: one conducts the sign-in, the others wait for what it stores. If the one is
//! ended meanwhile, another goes on where it was, so that the browser tab that is open still leads somewhere.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::attempt::{self, NoCode, scopes};
use super::callback::{Answered, Browser, Callback};
use super::keeper::{Inner, LOCKED, access};
use super::page::Page;
use super::token_endpoint::{self, Granted, NotGranted};
use super::{Problem, browser, metadata, now, registration, resource};
use crate::endpoint::{Challenge, SignInTrouble};
use crate::report::quoted;
use crate::secret::{AccessToken, AuthorizationCode};
use crate::store::{AttemptLock, Client, ClientOrigin, Pending, Record};

/// How long a sign-in is waited for.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// How often it is said that it is still waited for.
const REMINDER: Duration = Duration::from_secs(60);
/// How often a process that waits for another one looks.
const LOOK: Duration = Duration::from_millis(250);
/// Pauses before a code is sent again that certainly did not arrive.
const PAUSES: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(3)];

/// Has the user sign in. Done when the store holds another token than `known`.
pub(super) async fn sign_in(
    keeper: &Arc<Inner>,
    challenge: &Challenge,
    known: Option<&AccessToken>,
) -> Result<(), Problem> {
    let deadline = Instant::now() + LIMIT;
    let mut shown = None;
    let mut waited = false;
    loop {
        let attempt = keeper.store.try_attempt(keeper.key())?;
        if is_done(keeper, known)? {
            return Ok(());
        }
        if let Some(lock) = attempt {
            return conduct(keeper, &lock, challenge, waited).await;
        }
        waited = true;
        if let Some(pending) = keeper.store.pending(keeper.key()).filter(is_under_way)
            && shown.as_ref() != Some(&pending.state)
        {
            keeper.report.prompt(format!(
                "another mcp-hasp process waits for this sign-in; if its browser tab is gone, open {}",
                pending.link.expose_secret()
            ));
            shown = Some(pending.state);
        }
        if Instant::now() >= deadline {
            return Err(Problem::failed(
                "the sign-in that another mcp-hasp process waits for was not done in time; sign in again",
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn is_done(keeper: &Inner, known: Option<&AccessToken>) -> Result<bool, Problem> {
    let record = keeper.load()?;
    let found = access(record.as_ref());
    Ok(found.is_some() && found != known)
}

/// Whether somebody may still answer it. A time too far ahead is from a clock that was set back since.
fn is_under_way(pending: &Pending) -> bool {
    let now = now();
    pending.until > now
        && pending.until <= now.saturating_add(LIMIT.as_millis().try_into().unwrap_or(u64::MAX))
}

/// Conducts the sign-in, from where it is.
async fn conduct(
    keeper: &Arc<Inner>,
    lock: &AttemptLock,
    challenge: &Challenge,
    waited: bool,
) -> Result<(), Problem> {
    let (pending, callback) = match lock.read()? {
        Some(ended) if ended.until == 0 && waited => {
            return Err(Problem::failed(
                "the sign-in that another mcp-hasp process conducted has failed, and says there why",
            ));
        }
        Some(pending) if is_under_way(&pending) && fits(keeper, &pending) => match callback_of(&pending) {
            Some(callback) => {
                keeper.report.prompt(format!(
                    "going on with the sign-in that is open in the browser; if its tab is gone, open {}",
                    pending.link.expose_secret()
                ));
                (pending, callback)
            }
            None => begin(keeper, lock, challenge).await?,
        },
        _ => begin(keeper, lock, challenge).await?,
    };
    let outcome = match redirect(keeper, &pending, callback).await {
        Some((answered, browser)) => finish(keeper, &pending, answered, browser).await,
        None => Err(timed_out(keeper, &pending).await),
    };
    match outcome {
        Ok(()) => lock.clear()?,
        // Who waits for it learns that it is over, and opens no second tab.
        Err(_) => lock.write(&Pending { until: 0, ..pending })?,
    }
    outcome
}

/// A sign-in that was begun under other options is another one.
fn fits(keeper: &Inner, pending: &Pending) -> bool {
    let options = &keeper.options;
    options.issuer.as_ref().is_none_or(|issuer| *issuer == pending.issuer)
        && options.client_id.as_ref().is_none_or(|id| *id == pending.client.id)
        && options.resource.as_ref().is_none_or(|resource| *resource == pending.resource)
        && options.scope.as_ref().is_none_or(|scope| *scope == pending.asked)
}

fn callback_of(pending: &Pending) -> Option<Callback> {
    Callback::bind(Some(port_of(&pending.redirect_uri)?)).ok()
}

fn port_of(redirect_uri: &str) -> Option<u16> {
    Url::parse(redirect_uri).ok()?.port()
}

/// Finds out whom to ask, says so, and opens the browser.
async fn begin(
    keeper: &Inner,
    lock: &AttemptLock,
    challenge: &Challenge,
) -> Result<(Pending, Callback), Problem> {
    let (web, options, report) = (keeper.web().await, &keeper.options, &keeper.report);
    let stored = keeper.store.read(keeper.key())?;
    let known = stored.as_ref().map(|record| record.issuer.as_str());
    let found = resource::find(web, &keeper.url, challenge, options, known, report).await?;
    let server = metadata::find(web, &found.issuer).await?;
    if let Some(known) = known.filter(|known| *known != server.issuer) {
        report.warning(format!(
            "{} now names {} as its authorization server, and the stored sign-in is with {}: a new sign-in is needed, sign in only if you expect this",
            keeper.url,
            quoted(&server.issuer, 200),
            quoted(known, 200)
        ));
    }
    registration::may_know_secret(options, &keeper.url, &server.issuer, known)?;
    // Nothing of another issuer is used.
    let stored = stored.filter(|record| record.issuer == server.issuer);
    let kept = stored.as_ref().map(|record| &record.client).filter(|_| options.client_id.is_none());
    let callback = bind(options.callback_port, kept)?;
    let redirect_uri = callback.redirect_uri();
    let client = registration::client(web, &server, options, kept, &redirect_uri, report).await?;
    let asked = scopes(options, challenge.scope.as_deref(), &found.scopes, &server, stored.as_ref());
    let until = now().saturating_add(LIMIT.as_millis().try_into().unwrap_or(u64::MAX));
    let pending = attempt::begin(&server, client, found.resource, asked, &redirect_uri, until)?;
    // Before the browser is there: whoever goes on with it knows what was asked, and of whom.
    lock.write(&pending)?;
    announce(keeper, &pending, callback.port());
    Ok((pending, callback))
}

fn bind(fixed: Option<u16>, kept: Option<&Client>) -> Result<Callback, Problem> {
    if let Some(port) = fixed {
        return Callback::bind(Some(port)).map_err(|why| {
            Problem::failed(format!(
                "127.0.0.1:{port} (--callback-port) cannot be listened on ({why}); end what uses it, or name another port"
            ))
        });
    }
    // Where a registration is kept its port is tried first, for some servers know the one port alone.
    let port = kept.filter(|kept| kept.origin == ClientOrigin::Registered);
    let port = port.and_then(|kept| port_of(kept.redirect_uri.as_deref()?));
    let again = port.and_then(|port| Callback::bind(Some(port)).ok());
    again.map_or_else(|| Callback::bind(None), Ok).map_err(|why| {
        Problem::failed(format!(
            "no port of 127.0.0.1 can be listened on ({why}); name a free one with --callback-port"
        ))
    })
}

/// The link comes first: whatever becomes of the browser, the person has it.
fn announce(keeper: &Inner, pending: &Pending, port: u16) {
    let report = &keeper.report;
    report.prompt(format!(
        "sign in to {} at {}: open {}",
        keeper.url,
        quoted(&pending.issuer, 200),
        pending.link.expose_secret()
    ));
    if let Some(hint) = &keeper.options.elsewhere {
        report.info(hint.replace("PORT", &port.to_string()));
    }
    report.info(format!("waiting up to {} minutes for the browser to come back", LIMIT.as_secs() / 60));
    if keeper.options.opens_browser {
        browser::open(&pending.link, report);
    }
}

/// Waits for the browser. `None`: it did not come in time.
async fn redirect(keeper: &Inner, pending: &Pending, callback: Callback) -> Option<(Answered, Browser)> {
    let left = Duration::from_millis(pending.until.saturating_sub(now())).min(LIMIT);
    let deadline = Instant::now() + left;
    let answer = callback.answer(&pending.state);
    tokio::pin!(answer);
    loop {
        let reminder = (Instant::now() + REMINDER).min(deadline);
        if let Ok(answer) = tokio::time::timeout_at(reminder, &mut answer).await {
            return Some(answer);
        }
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 {
            return None;
        }
        keeper.report.info(format!("still waiting for the browser, {} s left", left.next_multiple_of(10)));
    }
}

/// Exchanges the code and stores what comes of it; only then the browser is told.
async fn finish(
    keeper: &Arc<Inner>,
    pending: &Pending,
    answered: Answered,
    browser: Browser,
) -> Result<(), Problem> {
    let code = match attempt::code(pending, answered) {
        Ok(code) => code,
        Err(NoCode::Declined(problem)) => {
            browser.show(Page::Denied).await;
            return Err(problem);
        }
        Err(NoCode::Failed(problem)) => {
            browser.show(Page::Failed).await;
            return Err(problem);
        }
    };
    keeper.report.conceal(code.0.expose_secret());
    let (inner, pending) = (Arc::clone(keeper), pending.clone());
    // A code is spent once: what comes of it is stored, even if nobody waits for it any more.
    let stored = keeper.tasks.spawn(Box::pin(async move {
        let outcome = exchange(&inner, &pending, code).await;
        browser.show(if outcome.is_ok() { Page::SignedIn } else { Page::Failed }).await;
        outcome
    }));
    stored.await.unwrap_or_else(|_| Err(Problem::failed("the sign-in was broken off; sign in again")))
}

async fn exchange(keeper: &Inner, pending: &Pending, code: AuthorizationCode) -> Result<(), Problem> {
    let granted = match grant(keeper, pending, code).await {
        Ok(granted) => granted,
        Err(NotGranted::UnknownClient(why)) if pending.client.origin == ClientOrigin::Registered => {
            forget_registration(keeper, pending).await?;
            return Err(Problem::failed(format!(
                "{why}; sign in again, and this program registers itself anew"
            )));
        }
        Err(NotGranted::UnknownClient(why)) => {
            return Err(Problem::failed(format!("{why}; check --client-id and --client-secret-file")));
        }
        Err(NotGranted::Dead(why) | NotGranted::Refused(why)) => {
            return Err(Problem::failed(format!("{why}; sign in again, or tell its operator")));
        }
        Err(NotGranted::Passing(problem) | NotGranted::Unsent(problem)) => {
            return Err(Problem {
                kind: SignInTrouble::Failed,
                why: format!("{problem}; sign in again"),
                ..problem
            });
        }
    };
    let lock = keeper.store.exclusive(keeper.key(), LOCKED).await?;
    let record = record(pending, granted);
    lock.write(&record).await?;
    keeper.hold(Some(record));
    Ok(())
}

async fn grant(keeper: &Inner, pending: &Pending, code: AuthorizationCode) -> Result<Granted, NotGranted> {
    let web = keeper.web().await;
    for pause in PAUSES {
        match token_endpoint::exchange(web, pending, code.clone()).await {
            Err(NotGranted::Unsent(_)) => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
    }
    token_endpoint::exchange(web, pending, code).await
}

fn record(pending: &Pending, granted: Granted) -> Record {
    let Granted { tokens, scopes } = granted;
    Record {
        issuer: pending.issuer.clone(),
        resource: pending.resource.clone(),
        client: pending.client.clone(),
        token_endpoint: pending.token_endpoint.clone(),
        revocation_endpoint: pending.revocation_endpoint.clone(),
        signed_in_at: tokens.obtained_at,
        asked: pending.asked.clone(),
        // Nothing said means: as it was asked (RFC 6749 §5.1).
        granted: scopes.unwrap_or_else(|| pending.asked.clone()),
        missing: Vec::new(),
        tokens: Some(tokens),
    }
}

/// An authorization page cannot say that it does not know the client, so a kept registration is not used twice in vain.
async fn timed_out(keeper: &Inner, pending: &Pending) -> Problem {
    let minutes = LIMIT.as_secs() / 60;
    let kept =
        keeper.store.read(keeper.key()).ok().flatten().is_some_and(|stored| stored.client == pending.client);
    if kept && pending.client.origin == ClientOrigin::Registered {
        return match forget_registration(keeper, pending).await {
            Ok(()) => Problem::failed(format!(
                "nobody signed in within {minutes} minutes; if the page said that it does not know this program: the next sign-in registers it anew"
            )),
            Err(problem) => problem,
        };
    }
    Problem::failed(format!("nobody signed in within {minutes} minutes; sign in again"))
}

/// The tokens, where there are any, may still be good; the registration is not used for another sign-in.
async fn forget_registration(keeper: &Inner, pending: &Pending) -> Result<(), Problem> {
    let lock = keeper.store.exclusive(keeper.key(), LOCKED).await?;
    let Some(mut stored) = lock.read()?.filter(|stored| stored.client == pending.client) else {
        return Ok(());
    };
    if stored.tokens.is_none() {
        lock.forget().await?;
    } else {
        stored.client.redirect_uri = None;
        lock.write(&stored).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::EndpointUrl;
    use crate::report::{Format, Level, Report};
    use crate::secret::Secret;
    use crate::signin::attempt::tests::client;
    use crate::signin::metadata::tests::metadata;
    use crate::signin::{Keeper, Options};
    use crate::store::{Store, Tokens};

    const URL: &str = "http://127.0.0.1:1/mcp";

    struct Place {
        _folder: tempfile::TempDir,
        store: Store,
        keeper: Keeper,
    }

    fn place() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let report = Report::start(Level::Error, Format::Text);
        let store = Store::new(folder.path().join("config"), report.clone());
        let url = EndpointUrl::parse(URL).unwrap();
        let keeper = Keeper::new(url, store.clone(), Options::default(), "login", report);
        Place { _folder: folder, store, keeper }
    }

    /// A sign-in that another process has begun, by the registration that is kept.
    fn begun(place: &Place) -> Pending {
        let client = Client { origin: ClientOrigin::Registered, ..client() };
        let until = now() + u64::try_from(LIMIT.as_millis()).unwrap();
        let port = Callback::bind(None).unwrap().port();
        let redirect_uri = format!("http://127.0.0.1:{port}/callback");
        let client = Client { redirect_uri: Some(redirect_uri.clone()), ..client };
        let server = metadata(|_| ()).unwrap();
        let pending = attempt::begin(&server, client, URL.into(), Vec::new(), &redirect_uri, until).unwrap();
        place.store.try_attempt(URL).unwrap().unwrap().write(&pending).unwrap();
        pending
    }

    async fn keep(place: &Place, client: &Client, tokens: Option<Tokens>) {
        let record = Record {
            issuer: "https://as".into(),
            resource: URL.into(),
            client: client.clone(),
            token_endpoint: "https://as/token".into(),
            revocation_endpoint: None,
            signed_in_at: 1,
            asked: Vec::new(),
            granted: Vec::new(),
            missing: Vec::new(),
            tokens,
        };
        place.store.exclusive(URL, LOCKED).await.unwrap().write(&record).await.unwrap();
    }

    /// A page that does not know the program cannot say so, so the registration is not tried twice in vain; tokens that
    /// came of it may still be good.
    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_longer_than_five_minutes() {
        let tokens = Tokens {
            access: AccessToken(Secret::new("access".into())),
            refresh: None,
            obtained_at: 1,
            expires_at: None,
        };
        for tokens in [None, Some(tokens)] {
            let place = place();
            let pending = begun(&place);
            keep(&place, &pending.client, tokens.clone()).await;
            place.keeper.record().unwrap();
            let from = Instant::now();
            let problem = place.keeper.ask(Challenge::default()).await.unwrap_err();
            assert!(problem.why.contains("within 5 minutes") && problem.why.contains("registers it anew"));
            let waited = from.elapsed();
            assert!(waited <= LIMIT && waited > LIMIT - Duration::from_secs(10), "{waited:?}");
            let left = place.store.read(URL).unwrap();
            match tokens {
                None => assert!(left.is_none()),
                Some(_) => {
                    let left = left.unwrap();
                    assert!(left.tokens.is_some() && left.client.redirect_uri.is_none());
                }
            }
            // Who else waited for it learns that it is over, and the port is free.
            assert_eq!(place.store.try_attempt(URL).unwrap().unwrap().read().unwrap().unwrap().until, 0);
            Callback::bind(port_of(&pending.redirect_uri)).unwrap();
        }
    }

    /// Another process holds the attempt and never comes to an end.
    #[tokio::test(start_paused = true)]
    async fn another_process_is_not_waited_for_forever() {
        let place = place();
        let _held = place.store.try_attempt(URL).unwrap().unwrap();
        let from = Instant::now();
        let problem = place.keeper.ask(Challenge::default()).await.unwrap_err();
        assert!(problem.why.contains("was not done in time"), "{problem}");
        assert!(from.elapsed() >= LIMIT && from.elapsed() < LIMIT + REMINDER);
    }

    #[tokio::test]
    async fn a_pending_sign_in_is_under_way_until_it_ends_and_not_before_it_began() {
        let place = place();
        let mut pending = begun(&place);
        assert!(is_under_way(&pending));
        for until in [0, now(), now() + 10_000_000_000] {
            pending.until = until;
            assert!(!is_under_way(&pending), "{until}");
        }
    }
}
