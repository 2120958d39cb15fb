//! Opening the endpoint, and opening it again: only what was read whole is ever served from or sent to.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{FIRST_ANSWER, Open, Phase, Relay};
use crate::endpoint::opening::open;
use crate::endpoint::{Opened, Patience, Trouble};
use crate::surface::{Gate, Kind};
use crate::wire::Client;

/// How long a legacy endpoint waits to hear what the harness can do.
const ACQUAINTANCE: Duration = Duration::from_secs(5);
/// How long an old session may take to end once a new one is there.
const OLD_SESSION: Duration = Duration::from_secs(2);

/// Why an endpoint is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reopen {
    /// It no longer knows the session, or did not let itself be opened.
    Lost,
    /// It has to hear of other capabilities.
    Replaced,
}

impl Relay {
    /// The opened endpoint, as soon as there is one. Tries again where the last opening failed.
    ///
    /// # Errors
    /// It cannot be opened, or not in the time that a harness waits for.
    pub(super) async fn ready(&self) -> Result<Arc<Open>, Trouble> {
        if let Phase::Ready(open) = &*self.phase.borrow() {
            return Ok(Arc::clone(open));
        }
        let mut phase = self.phase.subscribe();
        let retry = self.phase.send_if_modified(|phase| {
            let failed = matches!(phase, Phase::Failed(_));
            if failed {
                *phase = Phase::Opening;
            }
            failed
        });
        if retry {
            let _ = self.reopen.try_send(Reopen::Lost);
        }
        let first = self.started + FIRST_ANSWER;
        let deadline = if Instant::now() < first { first } else { Instant::now() + FIRST_ANSWER };
        let settled = async {
            match phase.wait_for(|phase| !matches!(phase, Phase::Opening)).await.as_deref() {
                Ok(Phase::Ready(open)) => Ok(Arc::clone(open)),
                Ok(Phase::Failed(trouble)) => Err(trouble.clone()),
                Ok(Phase::Opening) | Err(_) => Err(Trouble::ConnectionLost),
            }
        };
        tokio::time::timeout_at(deadline, settled)
            .await
            .unwrap_or(Err(Trouble::TimedOut { seconds: FIRST_ANSWER.as_secs() }))
    }

    /// The endpoint has to be opened again, unless that has happened since.
    pub(super) fn reopen(&self, generation: u64, why: Reopen) {
        let needed = self.phase.send_if_modified(|phase| {
            let stale = matches!(phase, Phase::Ready(open) if open.generation == generation);
            if stale {
                *phase = Phase::Opening;
            }
            stale
        });
        if needed {
            let _ = self.reopen.try_send(why);
        }
    }

    /// Opens the endpoint, and again whenever it is asked for. `failed` tells that there was no first time.
    pub(super) async fn keep_open(
        self: Arc<Self>,
        mut reopenings: mpsc::Receiver<Reopen>,
        failed: oneshot::Sender<Trouble>,
    ) {
        let client = async {
            let mut first = self.first.subscribe();
            let known = tokio::time::timeout(ACQUAINTANCE, first.wait_for(Option::is_some)).await;
            let known = known.ok().and_then(Result::ok);
            known.and_then(|first| Some(first.as_ref()?.client().clone())).unwrap_or_default()
        };
        let first = open(Arc::clone(&self.http), client, &self.limits, Patience::Start, &self.report).await;
        let mut current = match first {
            Ok(opened) => self.serve(opened, 0),
            Err(trouble) => {
                self.phase.send_replace(Phase::Failed(trouble.clone()));
                // Whoever waits has its answer before the process ends.
                self.calls.settled().await;
                let _ = failed.send(trouble);
                return;
            }
        };
        while let Some(why) = reopenings.recv().await {
            if why == Reopen::Replaced {
                current.session.close(OLD_SESSION).await;
            }
            let client = self.client();
            let generation = current.generation + 1;
            let again =
                open(Arc::clone(&self.http), async { client }, &self.limits, Patience::None, &self.report)
                    .await;
            match again {
                Ok(opened) => {
                    self.report.verbose(|| "the endpoint was opened again".into());
                    let old = std::mem::replace(&mut current, self.serve(opened, generation));
                    // By now its session is gone at the endpoint: only tasks are left to end.
                    self.spawn(async move { old.session.end(OLD_SESSION).await });
                }
                Err(trouble) => {
                    self.report.warning(format!(
                        "the endpoint could not be opened again: {trouble}; the next request tries"
                    ));
                    self.phase.send_replace(Phase::Failed(trouble));
                }
            }
        }
    }

    /// What the harness has declared by now.
    fn client(&self) -> Client {
        match self.legacy() {
            Some(session) => session.declared.client().clone(),
            None => {
                self.first.borrow().as_deref().map(|declared| declared.client().clone()).unwrap_or_default()
            }
        }
    }

    fn serve(self: &Arc<Self>, opened: Opened, generation: u64) -> Arc<Open> {
        let Opened { session, unsolicited, observed } = opened;
        let observed = Arc::new(observed);
        self.report.verbose(|| {
            let count = |kind| observed.list(kind).map_or(0, crate::surface::List::len);
            format!(
                "the endpoint is open ({:?} era): {} tools, {} prompts, {} resource templates, {} skills",
                observed.era,
                count(Kind::Tools),
                count(Kind::Prompts),
                count(Kind::ResourceTemplates),
                count(Kind::Skills)
            )
        });
        let open = Arc::new(Open {
            generation,
            session,
            gate: Gate::new(Arc::clone(&observed)),
            observed,
            log_rank: std::sync::Mutex::default(),
        });
        self.spawn(Arc::clone(self).hear(Arc::clone(&open), unsolicited));
        self.phase.send_replace(Phase::Ready(Arc::clone(&open)));
        open
    }
}
