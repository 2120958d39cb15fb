//! One request under way at the endpoint: everything that arrives for it, in order, up to its one answer.

use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderValue;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::http::{self, Answer, EventStream, Fields, Media};
use super::session::Session;
use super::trouble::Trouble;
use crate::wire::{Era, Message};

/// How often a broken legacy stream is taken up again without anything new arriving in between.
const MAX_RESUMES: u32 = 5;
/// Pause before resuming where the server named none, and the longest one we grant it.
const RESUME_PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_RESUME_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_RESUME_PAUSE: Duration = Duration::from_secs(60);
/// After its answer a stream should end; until then its connection cannot serve another call.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// What arrives for a request.
#[derive(Debug)]
pub enum Step {
    /// A notification that belongs to it.
    Note(Message),
    /// A request of a legacy server. Answer it with [`Session::answer`].
    Question(Message),
    /// The end.
    Done(Reply),
}

/// The one answer.
#[derive(Debug)]
pub enum Reply {
    /// A result, not yet admitted.
    Result(Message),
    /// A JSON-RPC error. Where it came with a status that is no success, with what that says by itself.
    Error(Message, Option<Trouble>),
    /// Nothing usable.
    Trouble(Trouble),
}

/// A request under way. Dropping it before the answer cancels it: the stream closes (modern),
/// or a cancellation is sent (legacy).
#[derive(Debug)]
pub struct Exchange {
    session: Arc<Session>,
    id: u64,
    method: Box<str>,
    source: Source,
    cancel_on_drop: bool,
    had_session: bool,
    resumes: u32,
    _under_way: TaskTrackerToken,
}

#[derive(Debug)]
enum Source {
    Whole(Box<Answer>),
    Events(Box<EventStream>),
    Spent,
}

impl Exchange {
    /// Sends a request whose `params` carry our envelope already.
    pub(super) async fn open(
        session: &Arc<Session>,
        method: &str,
        params: &str,
        fields: Fields,
    ) -> Result<Self, Trouble> {
        let id = session.next_id();
        let mut body = String::with_capacity(params.len() + method.len() + 80);
        body.push_str(r#"{"jsonrpc":"2.0","id":"#);
        body.push_str(&id.to_string());
        body.push_str(r#","method":"#);
        body.push_str(&crate::wire::json::quote(method));
        body.push_str(r#","params":"#);
        body.push_str(params);
        body.push('}');
        // From here on the endpoint may know of it: a cancellation must reach it even while the head is awaited.
        let mut exchange = Exchange {
            session: Arc::clone(session),
            id,
            method: method.into(),
            source: Source::Spent,
            cancel_on_drop: session.era() == Era::Legacy && method != "initialize",
            had_session: session.has_id(),
            resumes: 0,
            _under_way: session.exchanges.token(),
        };
        match session.post(fields, body).await {
            Ok(answer) => {
                exchange.source = match answer.media {
                    Media::EventStream if (200..300).contains(&answer.status) => {
                        Source::Events(Box::new(EventStream::new(answer.into_body())))
                    }
                    _ => Source::Whole(Box::new(answer)),
                };
                Ok(exchange)
            }
            Err(trouble) => {
                exchange.cancel_on_drop = false;
                Err(trouble)
            }
        }
    }

    /// The session it runs in.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What arrives next. Not to be called after [`Step::Done`].
    pub async fn next(&mut self) -> Step {
        loop {
            match std::mem::replace(&mut self.source, Source::Spent) {
                Source::Whole(answer) => {
                    let reply = self.whole(*answer).await;
                    self.cancel_on_drop = false;
                    return Step::Done(reply);
                }
                Source::Events(mut stream) => {
                    let event = stream.next().await;
                    let data = match event {
                        Ok(Some(event)) => event.data,
                        Ok(None) | Err(Trouble::ConnectionLost) => {
                            let clean = matches!(event, Ok(None));
                            match self.resume(&stream, clean).await {
                                Ok(next) => self.source = Source::Events(Box::new(next)),
                                Err(trouble) => return self.fail(trouble),
                            }
                            continue;
                        }
                        Err(trouble) => return self.fail(trouble),
                    };
                    self.resumes = 0;
                    if data.is_empty() {
                        // Primes Last-Event-ID (MCP 2025-11-25 "Resumability").
                        self.source = Source::Events(stream);
                        continue;
                    }
                    match self.event(data) {
                        Step::Done(Reply::Trouble(trouble)) => return self.fail(trouble),
                        Step::Done(reply) => {
                            self.cancel_on_drop = false;
                            self.session.drain(*stream, DRAIN_LIMIT);
                            return Step::Done(reply);
                        }
                        step => {
                            self.source = Source::Events(stream);
                            return step;
                        }
                    }
                }
                Source::Spent => return Step::Done(Reply::Trouble(Trouble::ConnectionLost)),
            }
        }
    }

    fn fail(&mut self, trouble: Trouble) -> Step {
        Step::Done(Reply::Trouble(trouble))
    }

    /// One message of an event stream.
    fn event(&self, data: Vec<u8>) -> Step {
        let message = match self.session.read(data, &self.method) {
            Ok(message) => message,
            Err(wrong) => return Step::Done(Reply::Trouble(Trouble::MalformedAnswer(malformed(&wrong)))),
        };
        if message.is_answer() {
            return Step::Done(self.answer(message));
        }
        match (message.id(), self.session.era()) {
            (None, _) => Step::Note(message),
            (Some(_), Era::Legacy) => Step::Question(message),
            (Some(_), Era::Modern) => {
                let method = crate::report::visible(message.method().unwrap_or_default(), 80);
                Step::Done(Reply::Trouble(Trouble::ServerRequest(method)))
            }
        }
    }

    fn answer(&self, message: Message) -> Reply {
        let ours = message.id().is_some_and(|id| id.as_str().parse() == Ok(self.id));
        if message.error().is_some() {
            // An error that could not tell its request belongs to the POST it answers (JSON-RPC 2.0 §5).
            return if ours || message.id().is_none() {
                Reply::Error(message, None)
            } else {
                Reply::Trouble(Trouble::WrongId)
            };
        }
        if ours { Reply::Result(message) } else { Reply::Trouble(Trouble::WrongId) }
    }

    /// A body that is not an event stream.
    async fn whole(&self, answer: Answer) -> Reply {
        let status = answer.status;
        if !(200..300).contains(&status) {
            return self.not_a_success(answer).await;
        }
        let wrong_type = (answer.media != Media::Json)
            .then(|| Trouble::ContentType { found: answer.content_type(), status });
        let body = match answer.into_body().read().await {
            Ok(body) => body,
            Err(trouble) => return Reply::Trouble(trouble),
        };
        if body.trim_ascii().is_empty() {
            return Reply::Trouble(Trouble::NoAnswer { status });
        }
        if let Some(trouble) = wrong_type {
            return Reply::Trouble(trouble);
        }
        match self.session.read(body, &self.method) {
            Ok(message) if message.is_answer() => self.answer(message),
            Ok(_) => Reply::Trouble(Trouble::MalformedAnswer("a request instead of an answer".into())),
            Err(wrong) => Reply::Trouble(Trouble::MalformedAnswer(malformed(&wrong))),
        }
    }

    async fn not_a_success(&self, answer: Answer) -> Reply {
        let status = answer.status;
        let plain = Trouble::HttpStatus { status, retry_after: answer.retry_after() };
        let message =
            match answer.into_body().read().await.ok().map(|body| self.session.read(body, &self.method)) {
                Some(Ok(message)) if message.error().is_some() => Some(message),
                _ => None,
            };
        let names_us = message.as_ref().is_some_and(|message| self.answer_id(message) == Some(true));
        let error = message.as_ref().map(Message::payload).unwrap_or_default();
        let session_gone = match status {
            // An error of the method's own, for our request, says that it was handled; any other 404 that the session
            // is gone (MCP 2025-11-25 "Session Management").
            404 => !(names_us && matches!(error.get("code"), Some("-32601" | "-32602" | "-32002"))),
            // Some servers say it so, and then cannot tell which request it was.
            400 => {
                !names_us
                    && error.string("message").is_some_and(|text| text.to_lowercase().contains("session"))
            }
            _ => false,
        };
        if self.had_session && session_gone {
            return Reply::Trouble(Trouble::SessionLost);
        }
        match message {
            Some(message) if self.answer_id(&message) != Some(false) => Reply::Error(message, Some(plain)),
            _ => Reply::Trouble(plain),
        }
    }

    /// Whether it names our request; `None` when it names none.
    fn answer_id(&self, message: &Message) -> Option<bool> {
        message.id().map(|id| id.as_str().parse() == Ok(self.id))
    }

    /// Takes a broken legacy stream up again where its server allows it (MCP 2025-11-25 "Resumability and Redelivery").
    async fn resume(&mut self, broken: &EventStream, clean_end: bool) -> Result<EventStream, Trouble> {
        let lost = if clean_end { Trouble::NoAnswer { status: 200 } } else { Trouble::ConnectionLost };
        let Some(last_id) = broken.last_id().filter(|_| self.session.era() == Era::Legacy) else {
            return Err(lost);
        };
        let pause = broken
            .retry()
            .map_or(RESUME_PAUSE, Duration::from_millis)
            .clamp(SHORTEST_RESUME_PAUSE, LONGEST_RESUME_PAUSE);
        while self.resumes < MAX_RESUMES {
            self.resumes += 1;
            tokio::time::sleep(pause).await;
            match self.session.get(Some(last_id)).await {
                Ok(answer) if answer.status == 200 && answer.media == Media::EventStream => {
                    return Ok(EventStream::resumed(answer.into_body(), broken));
                }
                Ok(answer) if answer.status == 404 && self.had_session => {
                    // The call may have run all the same, so this is no reason to send it again.
                    self.session.lost();
                    return Err(Trouble::ConnectionLost);
                }
                Ok(answer) if answer.status < 500 => return Err(lost),
                Ok(_) | Err(Trouble::Unreachable(_) | Trouble::ConnectionLost) => {}
                Err(_) => return Err(lost),
            }
        }
        Err(lost)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.cancel_on_drop {
            self.session.cancel(self.id);
        }
    }
}

fn malformed(wrong: &crate::wire::Malformed) -> String {
    use crate::wire::Malformed;
    match wrong {
        Malformed::NotJson => "not JSON".into(),
        Malformed::TooDeep { .. } => "nested too deeply".into(),
        Malformed::Batch => "an array of messages".into(),
        Malformed::NotAMessage { why, .. } => crate::report::visible(why, 120),
    }
}

/// The headers of a request to a modern endpoint.
pub(super) fn modern_headers(method: &str, name: Option<&str>) -> Fields {
    let mut fields = Vec::with_capacity(4);
    fields.push((http::PROTOCOL_VERSION, HeaderValue::from_static(crate::wire::MODERN_VERSION)));
    fields.push((http::METHOD, super::header::mirrored(method)));
    if let Some(name) = name {
        fields.push((http::NAME, super::header::mirrored(name)));
    }
    fields
}
