//! Opening the endpoint, opening it again, looking at it again: only what was read whole and verified is ever served
//! from or sent to.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::wishes::Again;
use super::{FIRST_ANSWER, Open, Phase, Relay, refusal};
use crate::endpoint::opening::open;
use crate::endpoint::{Opened, OwnMethod, Patience, Session, Trouble, read_again};
use crate::surface::{Authorization, Gate, Mismatch, Observed, Pin, Unverified, Verified};
use crate::wire::{Client, Era};

/// How long a legacy endpoint waits to hear what the harness can do.
const ACQUAINTANCE: Duration = Duration::from_secs(5);
/// How long an old session may take to end once a new one is there.
const OLD_SESSION: Duration = Duration::from_secs(2);
/// Between two looks at the surface: an endpoint that announces changes without end does not keep us busy.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Why there was no first time.
#[derive(Debug)]
pub enum NotOpened {
    /// The endpoint did not let itself be opened.
    Trouble(Trouble),
    /// Its surface is not the pinned one.
    Mismatch(Box<Mismatch>),
    /// It is, but that could not be recorded; in words for a person.
    Unrecorded(String),
}

/// Called once, with the surface that was verified at start, before anything is served; an error ends the run.
pub type Accept = Box<dyn FnOnce(&Verified) -> Result<(), String> + Send>;

/// Says with what the endpoint was opened.
pub type Authorized = Box<dyn Fn() -> Authorization + Send>;

/// The sessions that the endpoint gave us and that were not given up.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// The one being opened, whatever becomes of it.
    begun: Mutex<Option<Arc<Session>>>,
    /// Those that were opened.
    opened: Mutex<Vec<Arc<Session>>>,
}

impl Sessions {
    fn begin(&self, session: &Arc<Session>) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(session));
    }

    fn opened(&self, session: &Arc<Session>) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(session));
    }

    fn over(&self, session: &Arc<Session>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|held| !Arc::ptr_eq(held, session));
    }

    /// All of them; from now on there are none.
    pub(super) fn take(&self) -> Vec<Arc<Session>> {
        let mut all = std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        all.extend(self.begun.lock().unwrap_or_else(PoisonError::into_inner).take());
        all
    }
}

impl Relay {
    /// The opened endpoint, as soon as there is one. Tries again where the last opening failed.
    ///
    /// # Errors
    /// It cannot be opened, or not in the time that a harness waits for.
    pub(super) async fn ready(&self) -> Result<Arc<Open>, Trouble> {
        if let Some(known) = self.known() {
            return known;
        }
        self.try_again();
        let first = self.started + FIRST_ANSWER;
        let deadline = if Instant::now() < first { first } else { Instant::now() + FIRST_ANSWER };
        tokio::time::timeout_at(deadline, self.settled()).await.unwrap_or_else(|_| {
            let seconds = FIRST_ANSWER.as_secs();
            Err(self.http.waiting().unwrap_or(Trouble::TimedOut { seconds }))
        })
    }

    /// The same for a request of the harness, with the error that it gets.
    pub(super) async fn opened(&self) -> Result<Arc<Open>, String> {
        self.ready().await.map_err(|trouble| refusal::trouble(&trouble, "opening"))
    }

    /// Waits until the surface is in no doubt, as long as that takes: what came from the endpoint may have cost it an hour.
    ///
    /// # Errors
    /// The doubt stays: the endpoint cannot be opened, or the surface is another one.
    pub(super) async fn undoubted(&self) -> Result<(), Trouble> {
        if let Some(known) = self.known() {
            return known.map(drop);
        }
        self.try_again();
        self.settled().await.map(drop)
    }

    /// Where the endpoint stands, if that is known without waiting. Sealed comes before everything.
    fn known(&self) -> Option<Result<Arc<Open>, Trouble>> {
        if self.seal.is_closed() {
            return Some(Err(Trouble::Sealed));
        }
        match &*self.phase.borrow() {
            Phase::Ready(open) => Some(Ok(Arc::clone(open))),
            Phase::Opening | Phase::Failed(_) => None,
        }
    }

    async fn settled(&self) -> Result<Arc<Open>, Trouble> {
        let mut phase = self.phase.subscribe();
        match phase.wait_for(|phase| !matches!(phase, Phase::Opening)).await.as_deref() {
            Ok(Phase::Ready(open)) => Ok(Arc::clone(open)),
            Ok(Phase::Failed(trouble)) => Err(trouble.clone()),
            Ok(Phase::Opening) | Err(_) => Err(Trouble::ConnectionLost),
        }
    }

    /// Where the last opening failed: once more.
    fn try_again(&self) {
        let retry = self.phase.send_if_modified(|phase| {
            let failed = matches!(phase, Phase::Failed(_)) && !self.wishes.is_closed();
            if failed {
                *phase = Phase::Opening;
            }
            failed
        });
        if retry {
            self.wishes.utter(Again::Lost);
        }
    }

    /// The endpoint has to be opened again, unless that has happened since.
    pub(super) fn reopen(&self, generation: u64, why: Again) {
        let needed = self.phase.send_if_modified(|phase| {
            let stale = matches!(phase, Phase::Ready(open) if open.generation == generation);
            if stale {
                *phase = Phase::Opening;
            }
            stale
        });
        if needed {
            self.wishes.utter(why);
        }
    }

    /// The endpoint announces a change: from now on nothing passes until it was looked into.
    pub(super) fn announced(&self, method: &str) {
        // The list of resources is not pinned; templates and skills, which may have changed with it, are looked into.
        if method == "notifications/resources/list_changed" {
            return self.look_again();
        }
        self.doubt();
        // Also where it is being opened or looked at right now: what is read may be from before the announcement.
        self.wishes.utter(Again::Announced);
    }

    /// The surface may have changed without a word.
    pub(super) fn look_again(&self) {
        self.wishes.utter(Again::Unannounced);
    }

    /// Nothing passes until the surface was looked at.
    fn doubt(&self) {
        self.phase.send_if_modified(|phase| {
            let ready = matches!(phase, Phase::Ready(_));
            if ready {
                *phase = Phase::Opening;
            }
            ready
        });
    }

    /// Opens the endpoint, and again or looks at it whenever that is asked for. `failed` tells that there was no first time.
    pub(super) async fn keep_open(
        self: Arc<Self>,
        pin: Pin,
        authorization: Authorized,
        accept: Accept,
        failed: oneshot::Sender<NotOpened>,
    ) {
        let mut current = match self.open_first(pin, authorization, accept).await {
            Ok(open) => open,
            Err(why) => {
                // From here on nobody opens it again.
                self.wishes.close();
                self.phase.send_replace(Phase::Failed(match &why {
                    NotOpened::Trouble(trouble) => trouble.clone(),
                    NotOpened::Mismatch(_) => Trouble::Sealed,
                    NotOpened::Unrecorded(why) => Trouble::NotMcp(why.clone()),
                }));
                // Whoever waits has its answer before the process ends.
                self.calls.settled().await;
                let _ = failed.send(why);
                return;
            }
        };
        let mut last = Instant::now();
        loop {
            match self.wishes.next().await {
                why @ (Again::Announced | Again::Unannounced) => {
                    if why == Again::Announced {
                        // Announced while the endpoint was being opened or looked at: that made it ready again.
                        self.doubt();
                    }
                    tokio::time::sleep_until(last + BETWEEN_LOOKS).await;
                    self.look(&current, why).await;
                }
                why @ (Again::Lost | Again::Replaced) => self.open_again(&mut current, why).await,
            }
            last = Instant::now();
        }
    }

    async fn open_first(
        self: &Arc<Self>,
        mut pin: Pin,
        authorization: Authorized,
        accept: Accept,
    ) -> Result<Arc<Open>, NotOpened> {
        let client = async {
            let mut declared = self.declared.subscribe();
            let known = tokio::time::timeout(ACQUAINTANCE, declared.wait_for(Option::is_some)).await;
            drop(known);
            self.client()
        };
        let opened = self.open(client, Patience::Start).await.map_err(NotOpened::Trouble)?;
        let Opened { session, unsolicited, observed } = opened;
        let offers = observed.offers;
        pin.authorization = authorization();
        let refused = match pin.verify(observed) {
            Ok(verified) => match accept(&verified) {
                Ok(()) => {
                    let gate = Arc::new(Gate::new(verified, Arc::clone(&self.seal)));
                    return Ok(self.serve(Open::new(0, session, gate, offers), unsolicited));
                }
                Err(why) => NotOpened::Unrecorded(why),
            },
            Err(Unverified::Unclear(why)) => NotOpened::Trouble(Trouble::NotMcp(why)),
            Err(Unverified::Mismatch(mismatch)) => NotOpened::Mismatch(mismatch),
        };
        session.close(OLD_SESSION).await;
        Err(refused)
    }

    async fn open_again(self: &Arc<Self>, current: &mut Arc<Open>, why: Again) {
        let client = self.client();
        let opened = match self.open(async { client }, Patience::None).await {
            Ok(opened) => opened,
            Err(trouble) => {
                self.report.warning(format!(
                    "the endpoint could not be opened again: {trouble}; the next request tries"
                ));
                self.phase.send_replace(Phase::Failed(trouble));
                return;
            }
        };
        let Opened { session, unsolicited, observed } = opened;
        if !self.still_verified(&current.gate, &observed) {
            self.retire(session);
            return;
        }
        self.report.verbose(|| "the endpoint was opened again, its surface is the same".into());
        let gate = Arc::clone(&current.gate);
        let open = Open::new(current.generation + 1, session, gate, observed.offers);
        let old = std::mem::replace(current, self.serve(open, unsolicited));
        match why {
            // At the endpoint it is gone already: only its tasks are left to end.
            Again::Lost => {
                self.sessions.over(&old.session);
                self.spawn(async move { old.session.end(OLD_SESSION).await });
            }
            _ => self.retire(Arc::clone(&old.session)),
        }
    }

    async fn open(
        &self,
        client: impl Future<Output = Client>,
        patience: Patience,
    ) -> Result<Opened, Trouble> {
        let begun = |session: &Arc<Session>| self.sessions.begin(session);
        let http = Arc::clone(&self.http);
        let opened = open(http, client, &self.limits, patience, &self.report, &begun).await?;
        self.sessions.opened(&opened.session);
        Ok(opened)
    }

    /// A session that is replaced goes on until its calls are over, then it is given up.
    fn retire(self: &Arc<Self>, session: Arc<Session>) {
        let relay = Arc::clone(self);
        self.spawn(async move {
            if session.era() == Era::Modern {
                // What runs in it are streams that are opened anew, not calls.
                session.end(OLD_SESSION).await;
            }
            session.idle().await;
            session.close(OLD_SESSION).await;
            relay.sessions.over(&session);
        });
    }

    /// Reads the surface again in the session there is.
    async fn look(self: &Arc<Self>, current: &Arc<Open>, why: Again) {
        let read = read_again(&current.session, current.gate.verified().observed(), &self.limits).await;
        let observed = match read {
            Ok(observed) => observed,
            Err(Trouble::SessionLost) => return self.doubted(why, Trouble::SessionLost),
            Err(trouble) => {
                self.report.verbose(|| format!("the surface could not be read again: {trouble}"));
                return self.doubted(why, trouble);
            }
        };
        if self.still_verified(&current.gate, &observed) && why == Again::Announced {
            self.report.verbose(|| "the endpoint announced a change; its surface is the same".into());
            // Unless it turned out meanwhile that it has to be opened again.
            self.phase.send_if_modified(|phase| {
                let waiting = matches!(phase, Phase::Opening);
                if waiting {
                    *phase = Phase::Ready(Arc::clone(current));
                }
                waiting
            });
        }
    }

    /// What could not be looked into is in doubt, announced or not: nothing passes, and the next request opens the endpoint
    /// again.
    fn doubted(&self, why: Again, trouble: Trouble) {
        if why == Again::Announced {
            self.phase.send_replace(Phase::Failed(trouble));
            return;
        }
        self.phase.send_if_modified(|phase| {
            let ready = matches!(phase, Phase::Ready(_));
            if ready {
                *phase = Phase::Failed(trouble);
            }
            ready
        });
    }

    /// Whether what was read again is what was verified at start. If not, that was the end.
    fn still_verified(&self, gate: &Gate, observed: &Observed) -> bool {
        match gate.verified().verify_again(observed) {
            Ok(()) => true,
            Err(Unverified::Mismatch(mismatch)) => {
                self.seal.close(*mismatch);
                false
            }
            Err(Unverified::Unclear(why)) => {
                self.phase.send_replace(Phase::Failed(Trouble::NotMcp(why)));
                false
            }
        }
    }

    /// What the harness has declared by now.
    pub(super) fn client(&self) -> Client {
        self.declared.borrow().clone().unwrap_or_default()
    }

    fn serve(
        self: &Arc<Self>,
        open: Open,
        unsolicited: mpsc::Receiver<crate::endpoint::Unsolicited>,
    ) -> Arc<Open> {
        let open = Arc::new(open);
        self.spawn(Arc::clone(self).hear(Arc::clone(&open), unsolicited));
        self.spawn(Arc::clone(self).watch_surface(Arc::clone(&open)));
        self.phase.send_replace(Phase::Ready(Arc::clone(&open)));
        self.repeat_log_level(&open);
        open
    }

    /// A new session of a legacy endpoint knows nothing of the level that a legacy harness has set.
    fn repeat_log_level(self: &Arc<Self>, open: &Arc<Open>) {
        let level = self.legacy().and_then(|session| session.log_level());
        let Some(level) = level.filter(|_| open.session.era() == Era::Legacy && open.offers.logging) else {
            return;
        };
        let session = Arc::clone(&open.session);
        self.spawn(async move {
            // Without it the endpoint sends what it thinks fit.
            let _ = session.ask(OwnMethod::SetLogLevel, &format!("{{\"level\":{level}}}")).await;
        });
    }
}
