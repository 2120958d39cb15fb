//! Requests to the one URL, with the token. Nothing else in the program sends to the endpoint, and the token goes nowhere
//! else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    LOCATION, USER_AGENT,
};
use http::{Method, Request, Uri};
use http_body_util::Full;

use super::challenge::Challenge;
use super::sse;
use super::tokens::{Token, TokenSource};
use super::trouble::Trouble;
use crate::net::url::without_query;
use crate::net::{self, Client, EndpointUrl, Lost};
use crate::report::{Report, quoted, visible};
use crate::surface::Seal;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The revision a request is written in.
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the request in the body.
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The name or URI the request is about.
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The body of an answer that is not a success is read up to this many bytes.
const MAX_ERROR_BODY: usize = 1024 * 1024;

/// Header fields of a single request.
pub(super) type Fields = Vec<(HeaderName, HeaderValue)>;

/// The way to the endpoint.
#[derive(Debug)]
pub struct Http {
    client: Client,
    url: EndpointUrl,
    target: Uri,
    fixed: HeaderMap,
    fixed_for_post: HeaderMap,
    tokens: Arc<dyn TokenSource>,
    limit: usize,
    next_id: AtomicU64,
    seal: Arc<Seal>,
    report: Report,
}

/// The id that the endpoint gave to one session: sent back on every later request of it, in either era
/// (some endpoints bind seats to it), and to nobody else. It belongs to the sign-in that the session began with.
#[derive(Debug, Default)]
pub(super) struct SessionId {
    id: Mutex<Option<HeaderValue>>,
    /// The sign-in; within, none where there was no token.
    sign_in: OnceLock<Option<u64>>,
}

impl SessionId {
    /// Whether the endpoint gave one.
    pub(super) fn is_some(&self) -> bool {
        self.id.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes it away, so that it is given up once.
    pub(super) fn take(&self) -> Self {
        let id = self.id.lock().unwrap_or_else(PoisonError::into_inner).take();
        SessionId { id: Mutex::new(id), sign_in: self.sign_in.clone() }
    }

    fn adopt(&self, headers: &HeaderMap, report: &Report) {
        let Some(id) = headers.get(SESSION_ID) else { return };
        if !id.is_empty() && id.as_bytes().iter().all(u8::is_ascii_graphic) {
            let mut held = self.id.lock().unwrap_or_else(PoisonError::into_inner);
            if held.as_ref() != Some(id) {
                let mut id = id.clone();
                id.set_sensitive(true);
                report.conceal(id.to_str().unwrap_or_default());
                *held = Some(id);
            }
        }
    }
}

/// The kinds of body that MCP knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    EventStream,
    Other,
}

/// An answer whose head has arrived.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) media: Media,
    headers: HeaderMap,
    body: Body,
}

/// A body that is read piece by piece.
#[derive(Debug)]
pub(super) struct Body {
    inner: net::Body,
    limit: usize,
}

impl Http {
    /// `headers` go to the endpoint alone, with every request. Once `seal` is closed nothing is sent any more.
    pub fn new(
        client: Client,
        url: EndpointUrl,
        headers: &HeaderMap,
        tokens: Arc<dyn TokenSource>,
        limit: usize,
        seal: Arc<Seal>,
        report: Report,
    ) -> Self {
        let mut fixed = HeaderMap::with_capacity(16);
        // First, as RFC 9110 §7.2 asks.
        fixed.insert(HOST, checked_value(url.authority()));
        for (name, value) in headers {
            fixed.append(name, value.clone());
        }
        fixed.entry(USER_AGENT).or_insert(net::OUR_NAME);
        let mut fixed_for_post = fixed.clone();
        fixed_for_post.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        fixed_for_post.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Http {
            client,
            target: url.target(),
            url,
            fixed,
            fixed_for_post,
            tokens,
            limit,
            next_id: AtomicU64::new(1),
            seal,
            report,
        }
    }

    /// What every message of the endpoint is shown to.
    pub(super) fn seal(&self) -> &Seal {
        &self.seal
    }

    /// A request id. None is used twice, whatever session it is used in.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends one JSON-RPC message.
    pub(super) async fn post(
        &self,
        session: &SessionId,
        fields: Fields,
        body: String,
    ) -> Result<Answer, Trouble> {
        self.send(Method::POST, session, &self.fixed_for_post, fields, body.into()).await
    }

    /// Opens an event stream (legacy), from after `last_id` where there is one.
    pub(super) async fn get(
        &self,
        session: &SessionId,
        mut fields: Fields,
        last_id: Option<&str>,
    ) -> Result<Answer, Trouble> {
        fields.push((ACCEPT, HeaderValue::from_static("text/event-stream")));
        if let Some(value) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            fields.push((LAST_EVENT_ID, value));
        }
        self.send(Method::GET, session, &self.fixed, fields, Bytes::new()).await
    }

    /// Gives the session up.
    pub(super) async fn delete(&self, session: &SessionId, fields: Fields) -> Result<(), Trouble> {
        self.send(Method::DELETE, session, &self.fixed, fields, Bytes::new()).await.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        session: &SessionId,
        fixed: &HeaderMap,
        fields: Fields,
        body: Bytes,
    ) -> Result<Answer, Trouble> {
        let mut token = self.tokens.token().await?;
        let mut repeated = false;
        loop {
            self.belongs(session, token.as_ref())?;
            let answer =
                self.send_once(&method, session, fixed, fields.clone(), body.clone(), token.as_ref()).await;
            if let (Ok(Answer { status: 200..300, .. }), Some(token)) = (&answer, &token) {
                self.tokens.accepted(token);
            }
            let refused = matches!(answer, Err(Trouble::SignInRequired { .. })) && !repeated;
            // A request that is refused for its token was not acted on (RFC 6750 §3.1).
            let another = match token.take().filter(|_| refused) {
                Some(old) => self.tokens.another(old).await?,
                None => None,
            };
            if another.is_none() {
                if let Err(Trouble::SignInRequired { had_token: true, challenge, .. }) = &answer {
                    self.repeat(challenge);
                }
                return answer;
            }
            (token, repeated) = (another, true);
        }
    }

    /// A session goes on with the sign-in that it began with, or not at all: another one may be another person's, and what
    /// an endpoint serves to nobody may be something else.
    fn belongs(&self, session: &SessionId, token: Option<&Token>) -> Result<(), Trouble> {
        let sign_in = token.map(|token| token.sign_in);
        match (session.sign_in.get_or_init(|| sign_in), sign_in) {
            (begun, now) if *begun == now => Ok(()),
            (_, Some(_)) => Err(Trouble::SessionLost),
            (_, None) => Err(self.sign_in_required(true, Challenge::default())),
        }
    }

    fn sign_in_required(&self, had_token: bool, challenge: Challenge) -> Trouble {
        Trouble::SignInRequired { had_token, login: self.tokens.login(), challenge: Box::new(challenge) }
    }

    /// What to say while the user is being asked to sign in.
    pub fn waiting(&self) -> Option<Trouble> {
        self.tokens.waiting()
    }

    /// Asks the user to sign in.
    pub(super) async fn sign_in(&self, challenge: Challenge) -> Result<(), Trouble> {
        self.tokens.sign_in(challenge).await
    }

    async fn send_once(
        &self,
        method: &Method,
        session: &SessionId,
        fixed: &HeaderMap,
        fields: Fields,
        body: Bytes,
        token: Option<&Token>,
    ) -> Result<Answer, Trouble> {
        if self.seal.is_closed() {
            return Err(Trouble::Sealed);
        }
        let mut headers = fixed.clone();
        headers.reserve(fields.len() + 2);
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, bearer(token));
        }
        if let Some(id) = &*session.id.lock().unwrap_or_else(PoisonError::into_inner) {
            headers.insert(SESSION_ID, id.clone());
        }
        for (name, value) in fields {
            headers.append(name, value);
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        let (response, body) = self.client.send(request).await.map_err(trouble)?.into_parts();
        let (status, headers) = (response.status.as_u16(), response.headers);
        session.adopt(&headers, &self.report);
        match status {
            300..=399 => return Err(self.redirect(status, &headers)),
            401 => return Err(self.sign_in_required(token.is_some(), Challenge::read(&headers))),
            403 => return Err(self.forbidden(&Challenge::read(&headers))),
            _ => {}
        }
        if let Some(encoding) = headers.get(CONTENT_ENCODING)
            && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
        {
            return Err(Trouble::ContentEncoding(printable(encoding)));
        }
        let success = (200..300).contains(&status);
        let limit = if success { self.limit } else { self.limit.min(MAX_ERROR_BODY) };
        Ok(Answer { status, media: media(&headers), headers, body: Body { inner: body, limit } })
    }

    /// The endpoint's own words on a refusal go to stderr alone: they are for a person, and may hold what was sent.
    fn repeat(&self, challenge: &Challenge) {
        if let Some(words) = &challenge.error_description {
            self.report.warning(format!("the endpoint refuses, and says {}", quoted(words, 200)));
        }
    }

    /// Says what is missing, and has it remembered for the next sign-in.
    fn forbidden(&self, challenge: &Challenge) -> Trouble {
        self.repeat(challenge);
        let scopes = challenge.scope.as_ref().filter(|_| challenge.is_insufficient_scope());
        if let Some(scopes) = scopes {
            self.tokens.lacks(scopes);
        }
        Trouble::Forbidden {
            scope: scopes.map(|scopes| visible(&scopes.join(" "), 200)),
            login: self.tokens.login(),
        }
    }

    fn redirect(&self, status: u16, headers: &HeaderMap) -> Trouble {
        let target = headers
            .get(LOCATION)
            .and_then(|to| to.to_str().ok())
            .and_then(|to| self.url.as_url().join(to).ok());
        Trouble::Redirect {
            status,
            same_origin: target.as_ref().is_some_and(|to| to.origin() == self.url.as_url().origin()),
            target: target.map(|to| visible(&without_query(&to), 300)),
        }
    }
}

impl Answer {
    /// Seconds to wait, where it says so.
    pub(super) fn retry_after(&self) -> Option<u64> {
        net::retry_after(&self.headers)
    }

    /// What `Content-Type` said, for people.
    pub(super) fn content_type(&self) -> String {
        self.headers.get(CONTENT_TYPE).map_or_else(|| "a body without a type".into(), printable)
    }

    pub(super) fn into_body(self) -> Body {
        self.body
    }
}

impl Body {
    /// The next piece, `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Trouble> {
        self.inner.chunk().await.map_err(|_| Trouble::ConnectionLost)
    }

    /// The whole body, counted while it arrives.
    pub(super) async fn read(mut self) -> Result<Vec<u8>, Trouble> {
        let announced = usize::try_from(self.inner.announced().unwrap_or(0)).unwrap_or(usize::MAX);
        if announced > self.limit {
            return Err(Trouble::TooLarge { limit: self.limit });
        }
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > self.limit {
                return Err(Trouble::TooLarge { limit: self.limit });
            }
            if all.is_empty() {
                all.reserve_exact(announced.max(chunk.len()));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

/// An event stream being read.
#[derive(Debug)]
pub(super) struct EventStream {
    body: Body,
    rest: Bytes,
    reader: sse::Reader,
}

impl EventStream {
    pub(super) fn new(body: Body) -> Self {
        let reader = sse::Reader::new(body.limit);
        EventStream { body, rest: Bytes::new(), reader }
    }

    /// A stream that goes on where another one broke off.
    pub(super) fn resumed(body: Body, broken: &EventStream) -> Self {
        let reader = broken.reader.successor();
        EventStream { body, rest: Bytes::new(), reader }
    }

    /// The next event of the name `message`, `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<sse::Event>, Trouble> {
        loop {
            let (event, taken) = self
                .reader
                .feed(&self.rest)
                .map_err(|sse::TooLarge| Trouble::TooLarge { limit: self.body.limit })?;
            let _ = self.rest.split_to(taken.min(self.rest.len()));
            match event {
                Some(event) if event.name.is_empty() || event.name == "message" => return Ok(Some(event)),
                Some(_) => continue,
                None if !self.rest.is_empty() => continue,
                None => {}
            }
            match self.body.chunk().await? {
                Some(chunk) => self.rest = chunk,
                None => return Ok(None),
            }
        }
    }

    pub(super) fn last_id(&self) -> Option<&str> {
        self.reader.last_id().filter(|id| !id.is_empty())
    }

    pub(super) fn retry(&self) -> Option<u64> {
        self.reader.retry()
    }
}

fn media(headers: &HeaderMap) -> Media {
    let text = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence = text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Media::Json
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Media::EventStream
    } else {
        Media::Other
    }
}

fn printable(value: &HeaderValue) -> String {
    visible(&String::from_utf8_lossy(value.as_bytes()), 80)
}

/// `Authorization` (RFC 6750 §2.1).
fn bearer(token: &Token) -> HeaderValue {
    let mut value = checked_value(&format!("Bearer {}", token.access.0.expose_secret()));
    value.set_sensitive(true);
    value
}

/// config.rs, url.rs and token_endpoint.rs have checked that it is visible ASCII, which a header value always takes.
fn checked_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn trouble(lost: Lost) -> Trouble {
    match lost {
        Lost::Unreachable(why) => Trouble::Unreachable(net::cause(&*why)),
        Lost::Broken => Trouble::ConnectionLost,
    }
}
