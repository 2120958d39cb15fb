//! What was agreed with the endpoint: its era and revision, and for a legacy one the session's own tasks.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ::http::HeaderValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backoff::{Backoff, LONGEST_PAUSE};
use super::exchange::{Exchange, Reply, Step, modern_headers};
use super::http::{self, Answer, EventStream, Fields, Http, Media, SessionId};
use super::park::Parking;
use super::trouble::Trouble;
use super::watch::Watches;
use crate::report::{Report, visible};
use crate::surface::{Cleared, Kind, ParameterHeaders};
use crate::wire::meta::Stamp;
use crate::wire::{Client, Era, Malformed, Message, Object, json, meta, method};

/// A request of our own is given up after this; calls of the harness have no limit.
pub(super) const OWN_LIMIT: Duration = Duration::from_secs(60);
/// A message that awaits no answer is given up after this.
const NOTICE_LIMIT: Duration = Duration::from_secs(5);
/// Notices (cancellations, unsubscriptions) that may wait to be sent.
const NOTICES: usize = 256;
/// How often calls that wait for a person are looked at.
const EXPIRY_ROUND: Duration = Duration::from_secs(60);
/// Events of a legacy endpoint that belong to no request and may wait to be looked at.
const UNSOLICITED: usize = 64;

/// What arrives without a request.
#[derive(Debug)]
pub enum Unsolicited {
    /// A notification, or a request of a legacy endpoint.
    Message(Message),
    /// The endpoint no longer knows the session, though nobody asked it anything.
    SessionLost,
    /// The event stream broke. What was announced meanwhile was not heard.
    Missed,
}

/// The requests that this program makes of its own accord. Everything else leaves by [`Session::send`], with a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnMethod {
    /// `server/discover`
    Discover,
    /// `initialize`
    Initialize,
    /// The method that lists these.
    List(Kind),
    /// `logging/setLevel`
    SetLogLevel,
    /// `resources/subscribe`
    Subscribe,
}

impl OwnMethod {
    /// As it is written in a request.
    pub fn name(self) -> &'static str {
        match self {
            OwnMethod::Discover => "server/discover",
            OwnMethod::Initialize => "initialize",
            OwnMethod::List(kind) => kind.method(),
            OwnMethod::SetLogLevel => "logging/setLevel",
            OwnMethod::Subscribe => "resources/subscribe",
        }
    }
}

/// An open relation to the endpoint.
#[derive(Debug)]
pub struct Session {
    http: Arc<Http>,
    id: SessionId,
    era: Era,
    version: OnceLock<HeaderValue>,
    declared: Client,
    notices: mpsc::Sender<String>,
    unsolicited: mpsc::Sender<Unsolicited>,
    pub(super) watches: Watches,
    /// Calls of a legacy endpoint that wait for an answer of the user.
    pub parking: Parking,
    parameter_headers: OnceLock<ParameterHeaders>,
    tasks: TaskTracker,
    /// One token for each request under way.
    pub(super) exchanges: TaskTracker,
    stop: CancellationToken,
    report: Report,
}

impl Session {
    /// A relation of the given kind. The receiver yields what belongs to no request.
    pub(super) fn new(
        http: Arc<Http>,
        era: Era,
        declared: Client,
        report: Report,
    ) -> (Arc<Self>, mpsc::Receiver<Unsolicited>) {
        let (notices, outbox) = mpsc::channel(NOTICES);
        let (unsolicited, inbox) = mpsc::channel(UNSOLICITED);
        let session = Arc::new(Session {
            http,
            id: SessionId::default(),
            era,
            version: OnceLock::new(),
            declared,
            notices,
            unsolicited,
            watches: Watches::default(),
            parking: Parking::default(),
            parameter_headers: OnceLock::new(),
            tasks: TaskTracker::new(),
            exchanges: TaskTracker::new(),
            stop: CancellationToken::new(),
            report,
        });
        if era == Era::Legacy {
            session.expire_parked();
            session.tasks.spawn(send_notices(Arc::downgrade(&session), outbox, session.stop.clone()));
        }
        (session, inbox)
    }

    /// The endpoint's era.
    pub fn era(&self) -> Era {
        self.era
    }

    /// What was declared at `initialize`.
    pub fn declared(&self) -> &Client {
        &self.declared
    }

    pub(super) fn report(&self) -> &Report {
        &self.report
    }

    pub(super) fn next_id(&self) -> u64 {
        self.http.next_id()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Remembers which arguments of which tools are mirrored in headers.
    pub(super) fn learn_parameter_headers(&self, headers: ParameterHeaders) {
        let _ = self.parameter_headers.set(headers);
    }

    pub(super) fn version_header(&self) -> Fields {
        let version = match self.era {
            Era::Modern => Some(HeaderValue::from_static(crate::wire::MODERN_VERSION)),
            // Not agreed before the answer to initialize.
            Era::Legacy => self.version.get().cloned(),
        };
        version.map(|version| (http::PROTOCOL_VERSION, version)).into_iter().collect()
    }

    /// Remembers the revision that a legacy endpoint chose.
    pub(super) fn agree(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            let _ = self.version.set(version);
        }
    }

    /// Sends a request of the harness that was cleared to leave.
    ///
    /// # Errors
    /// Nothing usable came back, not even the head of an answer.
    pub async fn send(self: &Arc<Self>, cleared: Cleared<'_>) -> Result<Exchange, Trouble> {
        let request = cleared.request();
        let params = request.params();
        // Core tasks are not offered (SEP-1686 is a harness's business with nobody here to keep its promise).
        let without: &[&str] = match self.era {
            Era::Modern => &["task"],
            Era::Legacy => &["task", "inputResponses", "requestState"],
        };
        let own_token;
        let progress_token = match &request.progress_token {
            Some(token) => Some(token.as_str()),
            // Some endpoints keep a long call alive only where somebody listens to its progress.
            None if request.method() == "tools/call" => {
                own_token = format!("\"mcp-hasp:{}\"", self.next_id());
                Some(own_token.as_str())
            }
            None => None,
        };
        let stamp = Stamp {
            era: self.era,
            capabilities: request.client.json(),
            log_level: request.log_level.as_deref(),
            progress_token,
        };
        let stamped = meta::stamp_params(&params, &request.meta(), without, &stamp);
        let headers = match self.era {
            Era::Legacy => self.version_header(),
            Era::Modern => self.mirrored_headers(request.method(), &params),
        };
        Exchange::open(self, request.method(), &stamped, headers).await
    }

    fn mirrored_headers(&self, method: &str, params: &Object<'_>) -> Fields {
        let name = method::name_header_source(method).and_then(|key| params.string(key));
        let mut headers = modern_headers(method, name.as_deref());
        if method == "tools/call"
            && let (Some(all), Some(name)) = (self.parameter_headers.get(), name)
        {
            all.mirror(&name, params.get("arguments"), |header, value| {
                headers.push((header.clone(), super::header::mirrored(value)));
            });
        }
        headers
    }

    /// Sends a request of our own and waits for its result.
    ///
    /// # Errors
    /// [`Trouble::Refused`] for a JSON-RPC error, anything else for no usable answer.
    pub async fn ask(self: &Arc<Self>, method: OwnMethod, params: &str) -> Result<Message, Trouble> {
        match self.ask_raw(method, params).await? {
            Reply::Result(message) => Ok(message),
            Reply::Error(message, _) => Err(refused(method.name(), &message)),
            Reply::Trouble(trouble) => Err(trouble),
        }
    }

    /// As [`Session::ask`], with the error as it came.
    pub(super) async fn ask_raw(self: &Arc<Self>, method: OwnMethod, params: &str) -> Result<Reply, Trouble> {
        let limited = tokio::time::timeout(OWN_LIMIT, self.ask_unlimited(method, params)).await;
        limited.unwrap_or(Err(Trouble::TimedOut { seconds: OWN_LIMIT.as_secs() }))
    }

    async fn ask_unlimited(self: &Arc<Self>, method: OwnMethod, params: &str) -> Result<Reply, Trouble> {
        let read = Object::read(params).unwrap_or_default();
        let stamped = match method {
            OwnMethod::Initialize => params.to_owned(),
            _ => meta::stamp_params(
                &read,
                &Object::default(),
                &[],
                &Stamp { era: self.era, capabilities: "{}", log_level: None, progress_token: None },
            ),
        };
        let headers = match self.era {
            Era::Modern => modern_headers(method.name(), None),
            Era::Legacy => self.version_header(),
        };
        let mut exchange = Exchange::open(self, method.name(), &stamped, headers).await?;
        loop {
            match exchange.next().await {
                // Nobody may be listening yet, and nobody needs what comes with a request of our own.
                Step::Note(note) => drop(self.watches.deliver(note)),
                Step::Question(question) => self.decline(&question).await?,
                // An error in the body of a status that may pass is one that may pass.
                Step::Done(Reply::Error(_, Some(trouble))) if trouble.is_passing() => return Err(trouble),
                Step::Done(reply) => return Ok(reply),
            }
        }
    }

    /// Sends a notification (legacy; the modern core has none for clients).
    pub async fn notify(&self, method: &str, params: &str) {
        if self.era == Era::Legacy {
            let method = json::quote(method);
            // What is wrong with the endpoint shows with the next request.
            let _ = self.notice(format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#)).await;
        }
    }

    /// Answers a request of a legacy endpoint. `outcome` is the member `"result":…` or `"error":…`.
    ///
    /// # Errors
    /// The endpoint did not take it, and will wait for it.
    pub async fn answer(&self, question: &Message, outcome: &str) -> Result<(), Trouble> {
        match answer_body(question, outcome) {
            Some(body) => self.notice(body).await,
            None => Ok(()),
        }
    }

    /// Answers a request of a legacy endpoint that cannot be put to anybody.
    ///
    /// # Errors
    /// As for [`Session::answer`].
    pub async fn decline(&self, question: &Message) -> Result<(), Trouble> {
        self.answer(question, refusing_outcome(question)).await
    }

    /// The same in the background.
    pub(super) fn decline_later(&self, question: &Message) {
        answer_body(question, refusing_outcome(question)).into_iter().for_each(|body| self.send_later(body));
    }

    /// Sends what has no answer. Any success means that it was taken.
    async fn notice(&self, body: String) -> Result<(), Trouble> {
        let sent = tokio::time::timeout(NOTICE_LIMIT, self.post(self.version_header(), body)).await;
        let outcome = match sent.unwrap_or(Err(Trouble::TimedOut { seconds: NOTICE_LIMIT.as_secs() })) {
            Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
            Ok(answer) => {
                Err(Trouble::HttpStatus { status: answer.status, retry_after: answer.retry_after() })
            }
            Err(trouble) => Err(trouble),
        };
        if let Err(trouble) = &outcome {
            self.report.verbose(|| format!("a message without an answer was not taken: {trouble}"));
        }
        outcome
    }

    /// Reads a message of the endpoint. There is no other way, so each is shown to the seal.
    /// `with` is the method it belongs to.
    pub(super) fn read(&self, data: Vec<u8>, with: &str) -> Result<Message, Malformed> {
        let message = crate::wire::parse(data)?;
        self.http.seal().see(with, &message);
        Ok(message)
    }

    /// Sends one message of this session.
    pub(super) async fn post(&self, fields: Fields, body: String) -> Result<Answer, Trouble> {
        self.http.post(&self.id, fields, body).await
    }

    /// Opens an event stream of this session.
    pub(super) async fn get(&self, last_id: Option<&str>) -> Result<Answer, Trouble> {
        self.http.get(&self.id, self.version_header(), last_id).await
    }

    /// Whether the endpoint gave it an id.
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Tells a legacy endpoint, in the background, that nobody waits for a request any more.
    pub(super) fn cancel(&self, id: u64) {
        let params = format!(r#"{{"requestId":{id},"reason":"cancelled by the client"}}"#);
        self.send_later(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ));
    }

    pub(super) fn send_later(&self, body: String) {
        if self.notices.try_send(body).is_err() {
            self.report.verbose(|| "a cancellation could not be sent: too many are waiting".into());
        }
    }

    /// Gives up calls that have waited too long for a person, as long as the session lives.
    fn expire_parked(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        self.spawn(async move {
            while let Some(session) = session.upgrade() {
                session.parking.expire();
                drop(session);
                tokio::time::sleep(EXPIRY_ROUND).await;
            }
        });
    }

    /// The endpoint no longer knows the session.
    pub(super) fn lost(&self) {
        // When there is no room, the relay has enough to hear; the next request finds out.
        let _ = self.unsolicited.try_send(Unsolicited::SessionLost);
    }

    /// Takes what belongs to no request: updates go to who watches, the rest to the relay.
    pub async fn unsolicited(&self, message: Message) {
        let Some(message) = self.watches.deliver(message) else { return };
        let _ = self.unsolicited.send(Unsolicited::Message(message)).await;
    }

    /// Reads a stream to its end so that its connection can be used again.
    pub(super) fn drain(&self, mut stream: EventStream, limit: Duration) {
        self.spawn(async move {
            let _ =
                tokio::time::timeout(limit, async { while let Ok(Some(_)) = stream.next().await {} }).await;
        });
    }

    /// Opens the stream for what belongs to no request (legacy, MCP 2025-11-25 "Listening for Messages from the Server").
    pub(super) fn open_event_stream(self: &Arc<Self>) {
        let session = Arc::downgrade(self);
        self.spawn(async move {
            let mut backoff = Backoff::default();
            let mut last: Option<EventStream> = None;
            loop {
                let Some(session) = session.upgrade() else { return };
                backoff.attempt();
                let opened = session.get(last.as_ref().and_then(EventStream::last_id)).await;
                // Also where it is offered no more: then it is the last that is heard of the endpoint.
                if last.is_some() && opened.as_ref().is_ok_and(|answer| answer.status < 500) {
                    session.watches.tell_missed();
                    let _ = session.unsolicited.send(Unsolicited::Missed).await;
                }
                match opened {
                    Ok(answer) if answer.status == 200 && answer.media == Media::EventStream => {
                        let body = answer.into_body();
                        let mut stream = match &last {
                            Some(broken) => EventStream::resumed(body, broken),
                            None => EventStream::new(body),
                        };
                        // While it is silent, the stream must not keep the session alive.
                        let listening = Arc::downgrade(&session);
                        drop(session);
                        while let Ok(Some(event)) = stream.next().await {
                            let Some(session) = listening.upgrade() else { return };
                            session.take_event(event.data).await;
                        }
                        last = Some(stream);
                    }
                    Ok(answer) if answer.status == 404 && last.is_some() && session.id.is_some() => {
                        session.lost();
                        return;
                    }
                    // Not offered is normal: one quiet note, and never again in this session.
                    Ok(answer) if answer.status < 500 || answer.status == 501 => {
                        session.report.verbose(|| {
                            format!("the endpoint offers no event stream (HTTP {})", answer.status)
                        });
                        return;
                    }
                    // The session belongs to a sign-in that is no more.
                    Err(Trouble::SessionLost) => {
                        session.lost();
                        return;
                    }
                    Err(
                        Trouble::Redirect { .. }
                        | Trouble::SignInRequired { login: None, .. }
                        | Trouble::Forbidden { .. },
                    ) => return,
                    Ok(_) | Err(_) => drop(session),
                }
                let asked =
                    last.as_ref().and_then(EventStream::retry).map(Duration::from_millis).unwrap_or_default();
                tokio::time::sleep(backoff.pause().max(asked.min(LONGEST_PAUSE))).await;
            }
        });
    }

    async fn take_event(self: &Arc<Self>, data: Vec<u8>) {
        if data.is_empty() {
            return;
        }
        match self.read(data, "the event stream") {
            Ok(message) if message.method() == Some("ping") && message.id().is_some() => {
                let _ = self.decline(&message).await;
            }
            Ok(message) if !message.is_answer() => self.unsolicited(message).await,
            _ => self.report.verbose(|| {
                "the endpoint's event stream carried something that is no message; ignored".into()
            }),
        }
    }

    /// Resolves when the session is ended.
    pub async fn ended(&self) {
        self.stop.cancelled().await;
    }

    /// Resolves when no request is under way in it any more.
    pub async fn idle(&self) {
        self.exchanges.close();
        self.exchanges.wait().await;
    }

    /// Ends everything that runs in the session. Takes at most `limit`.
    pub async fn end(&self, limit: Duration) {
        self.parking.clear();
        self.watches.clear();
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(limit, self.tasks.wait()).await;
    }

    /// Ends everything that runs in the session and gives it up at the endpoint. Takes at most `limit`.
    pub async fn close(&self, limit: Duration) {
        // What still waits to be told must not cost the endpoint its session.
        self.end(limit / 3).await;
        let _ = tokio::time::timeout(limit - limit / 3, async {
            let id = self.id.take();
            if id.is_some() {
                let _ = self.http.delete(&id, self.version_header()).await;
            }
        })
        .await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn answer_body(question: &Message, outcome: &str) -> Option<String> {
    Some(format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, question.id()?.as_str()))
}

/// What a request gets that nobody here can answer. A ping needs nobody.
fn refusing_outcome(question: &Message) -> &'static str {
    match question.method() {
        Some("ping") => r#""result":{}"#,
        Some("elicitation/create") => r#""result":{"action":"cancel"}"#,
        _ => r#""error":{"code":-32601,"message":"not offered by this client"}"#,
    }
}

/// A JSON-RPC error to a request of our own.
pub(super) fn refused(method: &str, message: &Message) -> Trouble {
    let error = message.payload();
    Trouble::Refused {
        method: method.to_owned(),
        code: error.get("code").map_or_else(|| "?".into(), |code| visible(code, 20)),
        message: visible(&error.string("message").unwrap_or_default(), 200),
    }
}

/// Sends what waits, one at a time; at the end of the session what is still waiting, then stops.
async fn send_notices(session: Weak<Session>, mut outbox: mpsc::Receiver<String>, stop: CancellationToken) {
    loop {
        let body = tokio::select! {
            biased;
            body = outbox.recv() => body,
            () = stop.cancelled() => outbox.try_recv().ok(),
        };
        let (Some(body), Some(session)) = (body, session.upgrade()) else { return };
        let _ = session.notice(body).await;
    }
}
