//! Gives out the token for each request, and renews it: before it ends or when it is refused, once for all calls and all
//! processes. A refresh token is spent under the lock of its record, after the record was read again and could be written.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::token_endpoint::{self, NotGranted};
use super::{Options, Problem, asking, now};
use crate::endpoint::tokens::Pending;
use crate::endpoint::{Challenge, SignInTrouble, Token, TokenSource, Trouble};
use crate::net::{EndpointUrl, Reach, Web};
use crate::report::Report;
use crate::secret::AccessToken;
use crate::store::{ClientOrigin, Record, RecordLock, Stamp, Store, Tokens};

/// A token is renewed this long before it ends, in milliseconds, or after three quarters of a life that is short.
const MARGIN: u64 = 30_000;
/// A token that was never accepted, and is refused while it is younger than this, in milliseconds, is not refused for its
/// age: another one would be refused too.
const FRESH: u64 = 10_000;
/// How long a renewal waits for another process, which may itself wait 30 s for its answer.
pub(super) const LOCKED: Duration = Duration::from_secs(45);
/// Pauses after renewals that failed for the moment: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The sign-in at one endpoint. Cheap to clone.
#[derive(Clone)]
pub struct Keeper(Arc<Inner>);

pub(super) struct Inner {
    pub(super) url: EndpointUrl,
    pub(super) store: Store,
    pub(super) options: Options,
    pub(super) report: Report,
    login: Arc<str>,
    web: OnceCell<Web>,
    held: Mutex<Held>,
    renewal: Mutex<Option<watch::Receiver<Option<Renewed>>>>,
    pub(super) asking: AtomicBool,
    /// What must not be broken off: a refresh token or code that is spent, and what came of it not yet stored.
    pub(super) tasks: TaskTracker,
}

/// What is known of the store.
#[derive(Default)]
struct Held {
    stamp: Option<Stamp>,
    record: Option<Record>,
    /// The record could not be written, and this token stands there in its place.
    unsaved: Option<AccessToken>,
    /// The last token that the endpoint acted on.
    accepted: Option<AccessToken>,
    failures: u32,
    rest: Option<(Instant, Problem)>,
}

/// The record after a renewal; `None`: there is no sign-in any more.
type Renewed = Result<Option<Record>, Problem>;

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keeper({})", self.0.url)
    }
}

impl Keeper {
    /// `login` is the command that signs in. Nothing is read yet.
    pub fn new(url: EndpointUrl, store: Store, options: Options, login: &str, report: Report) -> Self {
        Keeper(Arc::new(Inner {
            url,
            store,
            options,
            report,
            login: login.into(),
            web: OnceCell::new(),
            held: Mutex::default(),
            renewal: Mutex::default(),
            asking: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        }))
    }

    /// The stored sign-in, if it is one that the options allow.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn record(&self) -> Result<Option<Record>, Problem> {
        self.0.load()
    }

    /// Asks the user to sign in, whatever is stored.
    ///
    /// # Errors
    /// There is no new sign-in.
    pub async fn ask(&self, challenge: Challenge) -> Result<(), Problem> {
        self.0.ask(challenge).await
    }

    /// Waits, no longer than that, until nothing is under way that must not be broken off.
    pub async fn settle(&self, limit: Duration) {
        self.0.tasks.close();
        let settled = async {
            self.0.tasks.wait().await;
            self.0.save().await;
        };
        let _ = tokio::time::timeout(limit, settled).await;
    }
}

impl Inner {
    /// Under which name the store keeps it: with its query, and the path as it is.
    pub(super) fn key(&self) -> &str {
        self.url.as_url().as_str()
    }

    /// The way to what the endpoint and its authorization server name.
    pub(super) async fn web(&self) -> &Web {
        let made = async { Web::new(Reach::of(&self.url).await, self.options.extra_roots.clone()) };
        self.web.get_or_init(|| made).await
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record as it stands in the store now.
    pub(super) fn load(&self) -> Result<Option<Record>, Problem> {
        let mut held = self.held();
        let stamp = self.store.stamp();
        if held.stamp != Some(stamp) {
            match self.store.read(self.key()) {
                Ok(found) => self.take(&mut held, found),
                // What is held serves as long as it does.
                Err(_) if held.record.is_some() => {}
                Err(problem) => return Err(problem.into()),
            }
            held.stamp = Some(stamp);
        }
        Ok(held.record.clone())
    }

    fn take(&self, held: &mut Held, found: Option<Record>) {
        if let Some(unsaved) = &held.unsaved
            && access(found.as_ref()) == Some(unsaved)
        {
            return;
        }
        let found = found.and_then(|record| self.fitting(record));
        if access(found.as_ref()) != access(held.record.as_ref()) {
            (held.failures, held.rest) = (0, None);
        }
        (held.record, held.unsaved) = (found, None);
    }

    /// A record that the options allow, with the client secret that they give.
    fn fitting(&self, mut record: Record) -> Option<Record> {
        let options = &self.options;
        let fits = options.issuer.as_ref().is_none_or(|issuer| *issuer == record.issuer)
            && options.resource.as_ref().is_none_or(|resource| *resource == record.resource)
            && options.client_id.as_ref().is_none_or(|id| *id == record.client.id);
        if options.client_id.is_some() && options.client_secret.is_some() {
            record.client.secret.clone_from(&options.client_secret);
        }
        fits.then_some(record)
    }

    /// Another record than the one that stands in the store by now is not held any more.
    pub(super) fn hold(&self, record: Option<Record>) {
        let mut held = self.held();
        let stamp = self.store.stamp();
        self.take(&mut held, record);
        held.stamp = Some(stamp);
    }

    /// Has the token renewed, unless that happens already or somebody else did it.
    async fn renewed(self: &Arc<Self>, stale: &AccessToken) -> Renewed {
        let mut running = {
            let mut renewal = self.renewal.lock().unwrap_or_else(PoisonError::into_inner);
            match &*renewal {
                Some(running) => running.clone(),
                None => {
                    if let Some((until, problem)) = &self.held().rest
                        && Instant::now() < *until
                    {
                        return Err(problem.clone());
                    }
                    let (done, running) = watch::channel(None);
                    *renewal = Some(running.clone());
                    let (inner, stale) = (Arc::clone(self), stale.clone());
                    // Boxed: it is large, and rarely runs.
                    self.tasks.spawn(Box::pin(async move {
                        let outcome = inner.renew(&stale).await;
                        inner.note(&outcome);
                        inner.renewal.lock().unwrap_or_else(PoisonError::into_inner).take();
                        let _ = done.send(Some(outcome));
                    }));
                    running
                }
            }
        };
        let outcome = running.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome.unwrap_or_else(|| Err(Problem::passing("the renewal of the sign-in was broken off", None)))
    }

    /// Remembers how long to leave the server alone, and says what is wrong.
    fn note(&self, outcome: &Renewed) {
        let mut held = self.held();
        let Err(problem) = outcome else {
            (held.failures, held.rest) = (0, None);
            return;
        };
        let grown = FIRST_PAUSE.saturating_mul(1 << held.failures.min(6));
        let pause = problem.retry_after.map_or(grown, Duration::from_secs).min(LONGEST_PAUSE);
        held.failures = held.failures.saturating_add(1);
        held.rest = Some((Instant::now() + pause, problem.clone()));
        self.report.warning(format!("the sign-in is not renewed, and kept: {problem}"));
    }

    async fn renew(&self, stale: &AccessToken) -> Renewed {
        let lock = self.store.exclusive(self.key(), LOCKED).await?;
        let stored = lock.read()?;
        // Where the last one could not be written, what is held is newer than what is stored.
        self.hold(stored);
        let Some(record) = self.held().record.clone() else { return Ok(None) };
        let Some(tokens) = &record.tokens else { return Ok(None) };
        if tokens.access != *stale && !is_due(tokens, now()) {
            return Ok(Some(record));
        }
        let Some(refresh) = &tokens.refresh else { return Ok(Some(record)) };
        // Before anything is spent: what comes of it can be stored.
        lock.write(&record).await?;
        self.hold(Some(record.clone()));
        match token_endpoint::refresh(self.web().await, &record, refresh).await {
            Ok(granted) => {
                let refresh = granted.tokens.refresh.clone().or_else(|| tokens.refresh.clone());
                let mut renewed = record.clone();
                renewed.tokens = Some(Tokens { refresh, ..granted.tokens });
                if let Some(scopes) = granted.scopes {
                    renewed.granted = scopes;
                }
                self.keep(&lock, renewed, &tokens.access).await
            }
            Err(NotGranted::Dead(why)) => {
                self.report
                    .warning(format!("the sign-in has ended: {why}; sign in again with {}", self.login));
                self.drop_tokens(&lock, record).await
            }
            Err(NotGranted::UnknownClient(why)) if record.client.origin == ClientOrigin::Registered => {
                self.report.warning(format!(
                    "the authorization server no longer knows this program: {why}; sign in again with {}",
                    self.login
                ));
                lock.forget().await?;
                self.hold(None);
                Ok(None)
            }
            Err(NotGranted::UnknownClient(why)) => {
                Err(Problem::failed(format!("{why}; check --client-id and --client-secret-file")))
            }
            Err(NotGranted::Refused(why)) => Err(Problem::failed(format!("{why}; tell its operator"))),
            Err(NotGranted::Passing(problem) | NotGranted::Unsent(problem)) => Err(problem),
        }
    }

    /// Stores what was granted before it is used.
    async fn keep(&self, lock: &RecordLock, renewed: Record, spent: &AccessToken) -> Renewed {
        match lock.write(&renewed).await {
            Ok(()) => self.hold(Some(renewed.clone())),
            Err(problem) => {
                self.report.warning(format!(
                    "the renewed sign-in cannot be stored yet: {problem}; it is held in memory, and lost if this process ends before"
                ));
                let mut held = self.held();
                (held.unsaved, held.record) = (Some(spent.clone()), Some(renewed.clone()));
            }
        }
        self.report.verbose(|| "the sign-in was renewed".into());
        Ok(Some(renewed))
    }

    /// The registration is still good: the next sign-in uses it.
    async fn drop_tokens(&self, lock: &RecordLock, mut record: Record) -> Renewed {
        record.tokens = None;
        lock.write(&record).await?;
        self.hold(Some(record));
        Ok(None)
    }

    /// Writes what could not be written when it came.
    async fn save(&self) {
        let unsaved = {
            let held = self.held();
            held.unsaved.clone().zip(held.record.clone())
        };
        let Some((stored, record)) = unsaved else { return };
        let Ok(lock) = self.store.exclusive(self.key(), LOCKED).await else { return };
        if lock.read().is_ok_and(|found| access(found.as_ref()) == Some(&stored))
            && lock.write(&record).await.is_ok()
        {
            self.hold(Some(record));
        }
    }

    async fn token(self: &Arc<Self>) -> Result<Option<Token>, Trouble> {
        let record = self.load().map_err(|problem| self.trouble(problem))?;
        let Some((record, tokens)) = with_tokens(record) else { return Ok(None) };
        if !is_due(&tokens, now()) || tokens.refresh.is_none() {
            // One that has ended and cannot be renewed is no token.
            return Ok((!has_ended(&tokens, now())).then(|| token(&record, tokens)));
        }
        match self.renewed(&tokens.access).await {
            Ok(renewed) => Ok(with_tokens(renewed).map(|(record, tokens)| token(&record, tokens))),
            // The old one serves as long as it lives.
            Err(_) if !has_ended(&tokens, now()) => Ok(Some(token(&record, tokens))),
            Err(problem) => Err(self.trouble(problem)),
        }
    }

    async fn another(self: &Arc<Self>, refused: Token) -> Result<Option<Token>, Trouble> {
        let record = self.load().map_err(|problem| self.trouble(problem))?;
        let Some((record, tokens)) = with_tokens(record) else { return Ok(None) };
        if tokens.access != refused.access {
            return if is_due(&tokens, now()) {
                self.token().await
            } else {
                Ok(Some(token(&record, tokens)))
            };
        }
        if is_fresh(&tokens, now()) && self.held().accepted.as_ref() != Some(&tokens.access) {
            self.report.warning("the endpoint does not accept a token that is fresh; ask its operator, or sign in as somebody it accepts");
            return Ok(None);
        }
        if tokens.refresh.is_none() {
            return Ok(None);
        }
        let renewed = self.renewed(&refused.access).await.map_err(|problem| self.trouble(problem))?;
        let renewed = with_tokens(renewed).filter(|(_, tokens)| tokens.access != refused.access);
        Ok(renewed.map(|(record, tokens)| token(&record, tokens)))
    }

    async fn remember_missing(&self, scopes: Vec<String>) -> Result<(), Problem> {
        let lock = self.store.exclusive(self.key(), LOCKED).await?;
        let Some(mut record) = lock.read()? else { return Ok(()) };
        let before = record.missing.len();
        for scope in scopes {
            if !record.missing.contains(&scope) {
                record.missing.push(scope);
            }
        }
        if record.missing.len() > before {
            lock.write(&record).await?;
        }
        Ok(())
    }

    async fn ask(self: &Arc<Self>, challenge: Challenge) -> Result<(), Problem> {
        struct Asking<'a>(&'a AtomicBool);
        impl Drop for Asking<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Relaxed);
            }
        }
        self.asking.store(true, Ordering::Relaxed);
        let _asking = Asking(&self.asking);
        let known = self.held().record.as_ref().and_then(|record| access(Some(record))).cloned();
        Box::pin(asking::sign_in(self, &challenge, known.as_ref())).await
    }

    fn trouble(&self, problem: Problem) -> Trouble {
        Trouble::SignIn {
            kind: problem.kind,
            why: problem.why.into(),
            login: Arc::clone(&self.login),
            retry_after: problem.retry_after,
        }
    }
}

impl TokenSource for Keeper {
    fn token(&self) -> Pending<'_, Option<Token>> {
        Box::pin(self.0.token())
    }

    fn another(&self, refused: Token) -> Pending<'_, Option<Token>> {
        Box::pin(self.0.another(refused))
    }

    fn accepted(&self, token: &Token) {
        let mut held = self.0.held();
        if held.accepted.as_ref() != Some(&token.access) {
            held.accepted = Some(token.access.clone());
        }
    }

    fn lacks(&self, scopes: &[String]) {
        if self
            .0
            .held()
            .record
            .as_ref()
            .is_none_or(|record| scopes.iter().all(|s| record.missing.contains(s)))
        {
            return;
        }
        let (inner, scopes) = (Arc::clone(&self.0), scopes.to_vec());
        self.0.tasks.spawn(async move {
            if let Err(problem) = inner.remember_missing(scopes).await {
                inner.report.verbose(|| format!("the missing scopes are not remembered: {problem}"));
            }
        });
    }

    fn sign_in(&self, challenge: Challenge) -> Pending<'_, ()> {
        Box::pin(async move { self.0.ask(challenge).await.map_err(|problem| self.0.trouble(problem)) })
    }

    fn waiting(&self) -> Option<Trouble> {
        let why = "a sign-in waits for the user in the browser".to_owned();
        let problem = Problem { kind: SignInTrouble::Waiting, why, retry_after: None };
        self.0.asking.load(Ordering::Relaxed).then(|| self.0.trouble(problem))
    }

    fn login(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.0.login))
    }
}

pub(super) fn access(record: Option<&Record>) -> Option<&AccessToken> {
    record.and_then(|record| record.tokens.as_ref()).map(|tokens| &tokens.access)
}

fn with_tokens(record: Option<Record>) -> Option<(Record, Tokens)> {
    let mut record = record?;
    let tokens = record.tokens.take()?;
    Some((record, tokens))
}

fn token(record: &Record, tokens: Tokens) -> Token {
    Token { access: tokens.access, sign_in: record.signed_in_at }
}

/// Whether it is time to renew it.
fn is_due(tokens: &Tokens, now: u64) -> bool {
    let Some(end) = tokens.expires_at else { return false };
    let life = end.saturating_sub(tokens.obtained_at);
    now >= end.saturating_sub(MARGIN.min(life / 4))
}

fn has_ended(tokens: &Tokens, now: u64) -> bool {
    tokens.expires_at.is_some_and(|end| now >= end)
}

/// Whether it came a moment ago. A clock that was set back makes nothing fresh.
fn is_fresh(tokens: &Tokens, now: u64) -> bool {
    let life = tokens.expires_at.map_or(u64::MAX, |end| end.saturating_sub(tokens.obtained_at));
    now.checked_sub(tokens.obtained_at).is_some_and(|age| age < FRESH.min(life / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn tokens(obtained_at: u64, expires_at: Option<u64>) -> Tokens {
        let access = AccessToken(Secret::new("a".into()));
        Tokens { access, refresh: None, obtained_at, expires_at }
    }

    #[test]
    fn a_token_is_renewed_before_it_ends_but_not_for_half_its_life() {
        let due = |life: u64, age: u64| is_due(&tokens(1_000_000, Some(1_000_000 + life)), 1_000_000 + age);
        assert!(!due(3_600_000, 3_569_999) && due(3_600_000, 3_570_000));
        assert!(!due(2_000, 1_499) && due(2_000, 1_500));
        assert!(due(0, 0));
        assert!(!is_due(&tokens(0, None), u64::MAX));
    }

    #[test]
    fn a_token_is_fresh_for_a_moment() {
        let fresh = |life: Option<u64>, now: u64| {
            is_fresh(&tokens(1_000_000, life.map(|life| 1_000_000 + life)), now)
        };
        assert!(fresh(None, 1_000_000) && fresh(None, 1_009_999) && !fresh(None, 1_010_000));
        assert!(fresh(Some(2_000), 1_000_999) && !fresh(Some(2_000), 1_001_000));
        assert!(!fresh(None, 999_999), "the clock was set back");
    }
}
