//! Between the two sides: phases, tasks, cancellation, leaving.

mod asks;
pub mod calls;
mod channel;
pub mod crossing;
pub mod listen;
pub mod opening;
pub mod refusal;
mod rounds;
pub mod route;
mod skills;
pub mod subscriptions;
pub mod unsolicited;
mod url_elicitation;
mod watching;
mod wishes;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::endpoint::{Filter, Http, Session, Trouble};
use crate::harness::{LegacySession, Line, Questions, Stdin, Stdout, error_line, modern, stdout};
use crate::limits::{Allow, Limits};
use crate::report::Report;
use crate::surface::{Gate, Observed, Offers, Pin, Seal};
use crate::wire::code::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};
use crate::wire::parse::MAX_DEPTH;
use crate::wire::request::progress_token;
use crate::wire::{Client, Declared, Era, Malformed, Message, Object, Payload, json, meta, parse};

use calls::{Calls, NotTaken};
pub use opening::{Accept, Authorized, NotOpened};
use subscriptions::Subscriptions;

/// The first message is answered within 20 s whatever happens; this leaves room for a slow machine.
const FIRST_ANSWER: Duration = Duration::from_secs(18);
/// After stdin has ended: for answers that are nearly there, for the endpoint to take its session back, for the last lines.
const FINISHING: Duration = Duration::from_millis(800);
const CLOSING: Duration = Duration::from_millis(600);
const FLUSHING: Duration = Duration::from_millis(200);

/// Everything the tasks of one run share.
#[derive(Debug)]
pub struct Relay {
    http: Arc<Http>,
    limits: Limits,
    allow: Allow,
    report: Report,
    stdout: Stdout,
    questions: Questions,
    calls: Arc<Calls>,
    seal: Arc<Seal>,
    phase: watch::Sender<Phase>,
    sessions: opening::Sessions,
    wishes: wishes::Wishes,
    legacy: Mutex<Option<Arc<LegacySession>>>,
    /// Everything that the harness has said it can do, once it has said something.
    declared: watch::Sender<Option<Client>>,
    subscriptions: Subscriptions,
    skills: skills::SkillFiles,
    channel: Option<channel::Channel>,
    tasks: TaskTracker,
    leaving: CancellationToken,
    started: Instant,
}

/// Where the endpoint stands.
#[derive(Clone, Debug)]
enum Phase {
    /// It is being opened, or looked at again; everything waits.
    Opening,
    /// It was opened and read; requests pass.
    Ready(Arc<Open>),
    /// It could not be opened again; the next request tries.
    Failed(Trouble),
}

/// An opened endpoint whose surface was verified: there is no gate without that. Requests can only be sent through one.
#[derive(Debug)]
pub struct Open {
    generation: u64,
    session: Arc<Session>,
    gate: Arc<Gate>,
    offers: Offers,
    log_rank: Mutex<Option<usize>>,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ending {
    /// The harness closed stdin or stdout.
    HarnessLeft,
    /// A signal asked for it.
    Stopped,
    /// Either, after the surface had turned out not to be the pinned one.
    Sealed,
}

/// What a run serves.
pub struct Endpoint {
    /// The way to it.
    pub http: Arc<Http>,
    /// The same as in `http`.
    pub seal: Arc<Seal>,
    /// What the user agreed to.
    pub pin: Pin,
    /// With what the surface was read, once it was.
    pub authorization: Authorized,
    /// The wake channel, where it is wanted.
    pub channel: Option<crate::channel::Options>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("http", &self.http).field("pin", &self.pin).finish_non_exhaustive()
    }
}

/// Who sent a request, as far as its own claim goes.
#[derive(Clone, Debug)]
enum Caller {
    Modern(Arc<Declared>),
    Legacy(Arc<LegacySession>),
}

impl Caller {
    fn era(&self) -> Era {
        match self {
            Caller::Modern(_) => Era::Modern,
            Caller::Legacy(_) => Era::Legacy,
        }
    }

    /// What it can do, as far as the user allows it.
    fn declared(&self) -> Arc<Declared> {
        match self {
            Caller::Modern(declared) => Arc::clone(declared),
            Caller::Legacy(session) => Arc::clone(&session.declared),
        }
    }

    /// The level of log messages wanted with a request, a JSON string.
    fn log_level(&self, meta: &Object<'_>) -> Option<String> {
        match self {
            Caller::Modern(_) => {
                meta.get(meta::LOG_LEVEL).filter(|level| level.starts_with('"')).map(str::to_owned)
            }
            Caller::Legacy(session) => session.log_level(),
        }
    }
}

/// Serves a harness until it leaves, or `stop` resolves.
///
/// # Errors
/// The endpoint could not be opened at start, or its surface is not the pinned one.
pub async fn run<R, W>(
    endpoint: Endpoint,
    accept: Accept,
    limits: Limits,
    allow: Allow,
    report: Report,
    (input, output): (R, W),
    stop: impl Future<Output = ()>,
) -> Result<Ending, NotOpened>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (stdout, lines) = Stdout::new();
    let Endpoint { http, seal, pin, authorization, channel } = endpoint;
    let (subscriptions, changes) = Subscriptions::new();
    let relay = Arc::new(Relay {
        questions: Questions::new(stdout.clone()),
        http,
        limits,
        allow,
        report,
        stdout,
        calls: Arc::default(),
        seal: Arc::clone(&seal),
        phase: watch::Sender::new(Phase::Opening),
        sessions: opening::Sessions::default(),
        wishes: wishes::Wishes::default(),
        legacy: Mutex::default(),
        declared: watch::Sender::new(None),
        subscriptions,
        skills: skills::SkillFiles::default(),
        channel: channel.map(channel::Channel::new),
        tasks: TaskTracker::new(),
        leaving: CancellationToken::new(),
        started: Instant::now(),
    });
    let gone = CancellationToken::new();
    let writer = tokio::spawn(write_until_gone(output, lines, gone.clone()));
    let (failed, failure) = tokio::sync::oneshot::channel();
    relay.spawn(Arc::clone(&relay).keep_open(pin, authorization, accept, failed));
    relay.spawn(Arc::clone(&relay).keep_subscriptions(changes));
    relay.spawn(Arc::clone(&relay).keep_channel());

    let mut stdin = Stdin::new(input, limits.message_bytes);
    tokio::pin!(stop);
    tokio::pin!(failure);
    let mut sealed = false;
    let ending = loop {
        tokio::select! {
            () = seal.closed(), if !sealed => {
                sealed = true;
                relay.seal_off();
            }
            line = stdin.next() => {
                let Some(line) = line else { break Ok(Ending::HarnessLeft) };
                tokio::select! {
                    () = relay.take_line(line) => {}
                    () = &mut stop => break Ok(Ending::Stopped),
                    () = gone.cancelled() => break Ok(Ending::HarnessLeft),
                }
            }
            () = &mut stop => break Ok(Ending::Stopped),
            () = gone.cancelled() => break Ok(Ending::HarnessLeft),
            Ok(why) = &mut failure, if !failure.is_terminated() => break Err(why),
        }
    };
    let finishing = match ending {
        Ok(Ending::HarnessLeft) if !gone.is_cancelled() => FINISHING,
        // The requests that wait are answered by the phase itself.
        Err(_) => FLUSHING,
        Ok(_) => Duration::ZERO,
    };
    relay.leave(finishing).await;
    drop(relay);
    let abort = writer.abort_handle();
    if tokio::time::timeout(FLUSHING, writer).await.is_err() {
        abort.abort();
    }
    match ending {
        Ok(_) if seal.is_closed() => Ok(Ending::Sealed),
        ending => ending,
    }
}

async fn write_until_gone(
    output: impl AsyncWrite + Unpin,
    lines: mpsc::Receiver<Payload>,
    gone: CancellationToken,
) {
    tokio::select! {
        // A broken pipe is a normal end; while nothing is written, the other branch sees it.
        written = stdout::write(output, lines) => if written.is_ok() { return },
        () = stdout::closed() => {}
    }
    gone.cancel();
}

impl Relay {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let leaving = self.leaving.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = leaving.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// One line of the harness.
    async fn take_line(self: &Arc<Self>, line: Line) {
        let bytes = match line {
            Line::Text(bytes) => bytes,
            Line::TooLong(id) => return self.refuse_too_long(id.as_deref()).await,
        };
        let batch = self.legacy().is_some_and(|session| session.takes_batches()).then(|| bytes.clone());
        match (parse(bytes), batch) {
            (Ok(message), _) => self.take_message(message).await,
            (Err(Malformed::Batch), Some(bytes)) => self.take_batch(&bytes).await,
            (Err(wrong), _) => self.refuse_malformed(wrong).await,
        }
    }

    /// 2025-03-26 alone has arrays of messages. Each is answered on its own.
    async fn take_batch(self: &Arc<Self>, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let items = json::array_items(text).unwrap_or_default();
        if items.is_empty() {
            return self
                .refuse(None, refusal::error(INVALID_REQUEST, "an array of messages must not be empty", None))
                .await;
        }
        for (item, _) in items {
            match parse(item.as_bytes().to_vec()) {
                Ok(message) => self.take_message(message).await,
                Err(wrong) => self.refuse_malformed(wrong).await,
            }
        }
    }

    async fn refuse_too_long(&self, id: Option<&str>) {
        let limit = self.limits.message_bytes;
        let message = format!("the message is larger than the limit of {limit} bytes (--max-message-bytes)");
        self.refuse(id, refusal::error(INVALID_REQUEST, &message, Some(r#"{"reason":"too_large"}"#))).await;
    }

    async fn refuse_malformed(&self, wrong: Malformed) {
        let (id, error) = match wrong {
            Malformed::NotJson => (None, refusal::error(PARSE_ERROR, "the line is not JSON in UTF-8", None)),
            Malformed::TooDeep { id } => (
                id,
                refusal::error(PARSE_ERROR, &format!("the line nests deeper than {MAX_DEPTH} levels"), None),
            ),
            Malformed::Batch => (
                None,
                refusal::error(
                    INVALID_REQUEST,
                    "arrays of messages are not part of this revision; send them singly",
                    None,
                ),
            ),
            Malformed::NotAMessage { why, id } => {
                (id, refusal::error(INVALID_REQUEST, &format!("not a JSON-RPC message: {why}"), None))
            }
        };
        self.refuse(id.as_deref(), error).await;
    }

    /// Answers a line with an error. Does not wait for a harness that is not reading, within the bound on requests.
    async fn refuse(&self, id: Option<&str>, error: String) {
        // An answer to a question of ours that cannot be used: the question has failed, and nobody asked anything.
        if id.is_some_and(|id| self.questions.unusable(id)) {
            return;
        }
        let line = error_line(id.unwrap_or("null"), error.into());
        let Err(line) = self.stdout.try_send(line) else { return };
        let stdout = self.stdout.clone();
        if self.tasks.len() < self.limits.requests {
            self.spawn(async move { stdout.send(line).await });
        } else {
            stdout.send(line).await;
        }
    }

    async fn take_message(self: &Arc<Self>, message: Message) {
        if message.is_answer() {
            return self.questions.answered(message);
        }
        let Some(id) = message.id().cloned() else { return self.take_notification(message).await };
        let caller = match self.caller(&message) {
            Ok(caller) => caller,
            Err(error) => return self.refuse(Some(id.as_str()), error).await,
        };
        let Some(caller) = caller else { return self.refuse(Some(id.as_str()), no_claim()).await };
        let token = progress_token(&message.meta());
        let endless = message.method() == Some("subscriptions/listen");
        let is_tool_call = message.method() == Some("tools/call");
        let call = match self.calls.enter(&id, token, endless, self.limits.requests) {
            Ok(call) => call,
            Err(NotTaken::SameId) => {
                let error = refusal::error(INVALID_REQUEST, "a request with this id is under way", None);
                return self.refuse(Some(id.as_str()), error).await;
            }
            Err(NotTaken::TooMany) => {
                return self
                    .refuse(
                        Some(id.as_str()),
                        refusal::own("too_many_requests", "too many requests are under way"),
                    )
                    .await;
            }
        };
        let relay = Arc::clone(self);
        let under_way = !self.seal.is_closed();
        // In a box, because a task is moved several times until it stands where it runs.
        self.tasks.spawn(Box::pin(async move {
            let answer = tokio::select! {
                biased;
                () = call.cancelled() => return,
                () = relay.seal.closed() => {
                    // It was under way, so it may have run; what is asked later is answered before it could.
                    error_line(id.as_str(), refusal::sealed(is_tool_call && under_way).into())
                }
                answer = relay.answer(&id, message, &caller) => answer,
                () = relay.leaving.cancelled() => match endless {
                    true => listen::ended(&id),
                    false => error_line(id.as_str(), refusal::own("leaving", "mcp-hasp is ending").into()),
                },
            };
            relay.stdout.send(answer).await;
            drop(call);
        }));
    }

    async fn take_notification(self: &Arc<Self>, message: Message) {
        match message.method() {
            Some("notifications/cancelled") => {
                let params = message.payload();
                if let Some(id) = params.get("requestId") {
                    self.calls.cancel(&crate::wire::Id::from_json(id));
                }
            }
            Some("notifications/initialized") => {
                if let Some(session) = self.legacy() {
                    session.set_initialized();
                    self.subscriptions.begin();
                    if let Some(channel) = &self.channel {
                        channel.begin();
                    }
                }
            }
            Some("notifications/roots/list_changed") if self.allow.roots => {
                if let Phase::Ready(open) = &*self.phase.borrow() {
                    let session = Arc::clone(&open.session);
                    self.spawn(async move { session.notify("notifications/roots/list_changed", "{}").await });
                }
            }
            _ => {}
        }
    }

    /// Who asks: a modern claim, an `initialize`, or the session that one opened. `Ok(None)`: none of them.
    fn caller(&self, message: &Message) -> Result<Option<Caller>, String> {
        let params = message.payload();
        if message.method() == Some("initialize") {
            let session = Arc::new(LegacySession::open(&params, self.allow));
            self.meet(session.declared.client());
            *self.legacy.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
            return Ok(Some(Caller::Legacy(session)));
        }
        let claim = modern::claim(&message.meta());
        let is_modern = claim.is_some() || message.method() == Some("server/discover");
        if self.channel.is_some() && is_modern {
            // That era has no way to wake a session; who hears "method not found" goes on with initialize.
            return Err(route::not_found(message.method().unwrap_or_default()));
        }
        match claim {
            Some(Ok(client)) => {
                let declared = Arc::new(Declared::new(client.limited(self.allow.sampling, self.allow.roots)));
                self.meet(declared.client());
                return Ok(Some(Caller::Modern(declared)));
            }
            Some(Err((code, text, data))) => return Err(refusal::error(code, &text, data.as_deref())),
            None => {}
        }
        if let Some(session) = self.legacy() {
            return Ok(Some(Caller::Legacy(session)));
        }
        // Before initialize a legacy client may send pings alone.
        let early = message.method() == Some("ping");
        Ok(early.then(|| Caller::Legacy(Arc::new(LegacySession::open(&Object::default(), self.allow)))))
    }

    fn legacy(&self) -> Option<Arc<LegacySession>> {
        self.legacy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what the harness can do; a legacy endpoint is waiting to hear it.
    fn meet(&self, client: &Client) {
        if self.declared.borrow().as_ref().is_some_and(|known| known.covers(client)) {
            return;
        }
        self.declared.send_modify(|known| {
            *known = Some(known.take().map_or_else(|| client.clone(), |known| known.union(client)));
        });
    }

    /// The surface is not the pinned one: says why, and closes everything that is open to the endpoint.
    fn seal_off(self: &Arc<Self>) {
        self.phase.send_replace(Phase::Failed(Trouble::Sealed));
        if let Some(why) = self.seal.why() {
            self.report.error(format!("{why}; nothing passes any more, {}", why.advice()));
            self.report.rows(&why.rows());
        }
        for session in self.sessions.take() {
            self.spawn(async move { session.end(CLOSING).await });
        }
    }

    async fn leave(&self, finishing: Duration) {
        let _ = tokio::time::timeout(finishing, self.calls.settled()).await;
        self.leaving.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(FLUSHING, self.tasks.wait()).await;
        let mut closing = tokio::task::JoinSet::new();
        for session in self.sessions.take() {
            closing.spawn(async move { session.close(CLOSING).await });
        }
        closing.join_all().await;
    }
}

fn no_claim() -> String {
    let message = format!(
        "send initialize first, or _meta with {} and {}",
        meta::PROTOCOL_VERSION,
        meta::CLIENT_CAPABILITIES
    );
    refusal::error(INVALID_PARAMS, &message, None)
}

impl Open {
    fn new(generation: u64, session: Arc<Session>, gate: Arc<Gate>, offers: Offers) -> Self {
        Open { generation, session, gate, offers, log_rank: Mutex::default() }
    }

    /// What is served: the texts that were verified at start.
    fn served(&self) -> &Observed {
        self.gate.verified().observed()
    }

    /// What of a filter a legacy endpoint offers at all. A modern one says so itself, in its acknowledgement.
    fn offered(&self, mut filter: Filter) -> Filter {
        if self.session.era() == Era::Legacy {
            filter.resources_list &= self.offers.resources_changed;
            if !self.offers.subscriptions {
                filter.uris.clear();
            }
        }
        filter
    }
}
