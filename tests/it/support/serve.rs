//! The endpoint's wire: connections, the choice of an answer, and how each kind of answer is written.

use std::{
    collections::HashMap,
    io,
    pin::pin,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::{Notify, mpsc},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Era,
    answers::Surface,
    body::{Out, Piece},
    guard::{Guard, Verdict},
    lenient,
    record::{Book, Fate, Recorded, Ticket},
    reply::{Content, Reply, Script, Step, error_text, event_text, notification_text, result_text},
    rules::{self, Expected},
};

/// A test's own answer to a method.
pub type Handler = Arc<dyn Fn(&Recorded) -> Reply + Send + Sync>;

/// The state of one endpoint, shared by its connections.
pub struct Server {
    pub sessions: bool,
    pub sse: bool,
    pub path: String,
    pub refuse_get: Option<u16>,
    pub allow_unknown: bool,
    /// Several clients that each count their ids from the start.
    pub many_clients: bool,
    pub bearer: Mutex<Option<String>>,
    pub guard: Option<Guard>,
    pub surface: Mutex<Surface>,
    pub handlers: Mutex<HashMap<String, Handler>>,
    pub session: Mutex<Session>,
    pub book: Arc<Book>,
    pub wake: Arc<Notify>,
    pub stop: Notify,
    streams: Mutex<Vec<Stream>>,
}

/// The session id that holds, those that are over, and the revision agreed on.
#[derive(Default)]
pub struct Session {
    pub current: Option<String>,
    past: Vec<String>,
    negotiated: Option<String>,
}

impl Session {
    /// The session is over.
    pub fn forget(&mut self) {
        self.past.extend(self.current.take());
    }

    fn issue(&mut self) {
        self.forget();
        self.current = Some(format!("session-{}", self.past.len()));
    }
}

/// A stream that stays open for the test to write on.
struct Stream {
    kind: &'static str,
    id: String,
    sender: mpsc::Sender<Piece>,
}

impl Server {
    /// The default endpoint of that era.
    pub fn new(era: Era) -> Self {
        Self {
            sessions: false,
            sse: false,
            path: "/mcp".to_owned(),
            refuse_get: None,
            allow_unknown: false,
            many_clients: false,
            bearer: Mutex::default(),
            guard: None,
            surface: Mutex::new(Surface::new(era)),
            handlers: Mutex::default(),
            session: Mutex::default(),
            book: Arc::default(),
            wake: Arc::default(),
            stop: Notify::new(),
            streams: Mutex::default(),
        }
    }

    /// The era it speaks now.
    fn era(&self) -> Era {
        self.surface.lock().unwrap().era
    }

    /// Waits until exactly that many streams of a kind are open.
    pub async fn streams_open(&self, kind: &str, count: usize) {
        let what = format!("{count} open stream(s) of {kind}");
        self.book.expect(&what, |_| (self.open(kind).len() == count).then_some(())).await;
    }

    /// Writes on every open stream of a kind; the text may depend on the id of its request.
    pub async fn push(&self, kind: &str, text: impl Fn(&str) -> String) {
        for (id, sender) in self.open(kind) {
            let _ = sender.send(Piece::Data(text(&id).into())).await;
        }
    }

    /// Cuts every open stream of a kind.
    pub async fn cut(&self, kind: &str) {
        for (_, sender) in self.open(kind) {
            let _ = sender.send(Piece::Cut).await;
        }
    }

    /// Ends every listen stream with its result.
    pub async fn end_listens(&self) {
        let kind = "subscriptions/listen";
        let stamp = |id: &str| format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        let result = |id: &str| format!(r#"{{"resultType":"complete","_meta":{}}}"#, stamp(id));
        self.push(kind, |id| event_text(&result_text(id, &result(id)))).await;
        self.streams.lock().unwrap().retain(|stream| stream.kind != kind);
    }

    /// Lets go of all streams, when their connections are gone.
    pub fn drop_streams(&self) {
        self.streams.lock().unwrap().clear();
    }

    fn open(&self, kind: &str) -> Vec<(String, mpsc::Sender<Piece>)> {
        let mut streams = self.streams.lock().unwrap();
        streams.retain(|stream| !stream.sender.is_closed());
        let of_kind = streams.iter().filter(|stream| stream.kind == kind);
        of_kind.map(|stream| (stream.id.clone(), stream.sender.clone())).collect()
    }

    fn keep(&self, kind: &'static str, request: &Recorded, sender: mpsc::Sender<Piece>) {
        self.streams.lock().unwrap().push(Stream { kind, id: request.id_raw(), sender });
        self.book.tell();
    }

    /// The answer to a request: a refusal where it breaks a rule, else a script's, else the surface's.
    fn decide(&self, request: &Recorded) -> Answered {
        let document =
            self.guard.as_ref().and_then(|guard| guard.document_for(request, &self.path, &self.book));
        if let Some(document) = document {
            return Answered::By(document);
        }
        let broken = self.broken(request);
        if !broken.is_empty() {
            let text = broken.join("; ");
            broken.into_iter().for_each(|text| self.book.violation(text));
            // how a server puts it that such a request means nothing to
            if let Some(handler) = self.handlers.lock().unwrap().get("rules").cloned() {
                return Answered::By(handler(request));
            }
            return Answered::By(Reply::error_code(-32600, &text).with_status(400));
        }
        if let Some(guard) = &self.guard
            && let Verdict::Refuse(reply) = guard.judge(request, &self.path, &self.book)
        {
            return Answered::By(reply);
        }
        if request
            .header("mcp-session-id")
            .is_some_and(|id| self.session.lock().unwrap().past.contains(&id.to_owned()))
        {
            return Answered::By(Reply::error_code(-32001, "Session not found").with_status(404));
        }
        let key = if request.method().is_empty() { request.verb.as_str() } else { request.method() };
        let handler = self.handlers.lock().unwrap().get(key).cloned();
        if let Some(handler) = handler {
            return Answered::By(handler(request));
        }
        match request.verb.as_str() {
            "GET" => {
                return self
                    .refuse_get
                    .map_or(Answered::Stream("GET"), |status| Answered::By(Reply::status(status)));
            }
            "DELETE" => {
                self.session.lock().unwrap().forget();
                return Answered::By(Reply::status(200));
            }
            _ if !request.is_request() => return Answered::By(Reply::accepted()),
            _ => {}
        }
        if self.era() == Era::Modern && request.method() == "subscriptions/listen" {
            return Answered::Stream("subscriptions/listen");
        }
        let known = self.surface.lock().unwrap().answer(request, &self.wake);
        Answered::By(known.unwrap_or_else(|| self.unknown(request)))
    }

    fn broken(&self, request: &Recorded) -> Vec<String> {
        let session = self.session.lock().unwrap();
        let earlier = if self.many_clients { Vec::new() } else { self.book.requests() };
        let bearer = self.bearer.lock().unwrap();
        rules::broken(
            request,
            &Expected {
                era: self.era(),
                path: &self.path,
                bearer: bearer.as_deref(),
                guarded: self.guard.as_ref().is_some_and(|guard| !guard.authorities.is_empty()),
                session: session.current.as_deref(),
                past_sessions: &session.past,
                negotiated: session.negotiated.as_deref(),
                earlier: earlier.get(..request.order).unwrap_or_default(),
            },
        )
    }

    /// When a stream ends with the token it was opened with, where streams do.
    fn stream_ends(&self, request: &Recorded) -> Option<tokio::time::Instant> {
        let guard = self.guard.as_ref().filter(|guard| guard.ends_streams)?;
        match guard.judge(request, &self.path, &self.book) {
            Verdict::Pass(ends) => ends,
            Verdict::Refuse(_) => None,
        }
    }

    fn unknown(&self, request: &Recorded) -> Reply {
        if !self.allow_unknown {
            self.book.violation(format!("#{} unknown method {}", request.order, request.method()));
        }
        let status = if self.era() == Era::Modern { 404 } else { 200 };
        Reply::error_code(-32601, "Method not found").with_status(status)
    }

    /// What a successful opening changes, and the session header that goes with an answer.
    fn session_header(&self, request: &Recorded) -> Option<String> {
        let mut session = self.session.lock().unwrap();
        if self.era() == Era::Modern {
            if self.sessions && session.current.is_none() && request.verb == "POST" {
                session.issue();
            }
            return session.current.clone();
        }
        if request.method() != "initialize" {
            return None;
        }
        session.negotiated = Some(self.surface.lock().unwrap().version.clone());
        if self.sessions {
            session.issue();
        }
        session.current.clone()
    }
}

enum Answered {
    By(Reply),
    Stream(&'static str),
}

/// Accepts connections until it is told to stop, and has closed them all when it returns.
pub async fn accept_forever(server: Arc<Server>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = server.stop.notified() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted.unwrap().0,
        };
        let (server, tls) = (server.clone(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => connection(server, stream).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(server, stream).await;
                    }
                }
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(server: Arc<Server>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(move |request| exchange(server.clone(), request));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn exchange(server: Arc<Server>, request: Request<Incoming>) -> Result<Response<Out>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let (request, mut ticket) = server.book.record(Recorded {
        order: 0,
        verb: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        json: lenient::parse(&body).unwrap_or_default(),
        body,
        fate: Fate::Open,
    });
    match server.decide(&request) {
        Answered::Stream(kind) => {
            let (sender, out) = Out::stream(ticket);
            if kind != "GET" {
                let _ = sender.try_send(Piece::Data(acknowledgement(&server, &request).into()));
            }
            if let Some(ends) = server.stream_ends(&request) {
                let sender = sender.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = sender.closed() => {}
                        () = tokio::time::sleep_until(ends) => drop(sender.send(Piece::Cut).await),
                    }
                });
            }
            server.keep(kind, &request, sender);
            respond(
                &server,
                &request,
                200,
                &[("content-type".to_owned(), "text/event-stream".to_owned())],
                out,
            )
        }
        Answered::By(Reply { content: Content::Hang, .. }) => std::future::pending().await,
        Answered::By(Reply { content: Content::Close, .. }) => {
            ticket.settle(Fate::CutByEndpoint);
            Err(io::Error::other("closed, as the script says"))
        }
        Answered::By(reply) => answer(&server, request, reply, ticket),
    }
}

fn acknowledgement(server: &Server, request: &Recorded) -> String {
    let filter = server.surface.lock().unwrap().acknowledged(request);
    let id = request.id_raw();
    let params =
        format!(r#"{{"notifications":{filter},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#);
    event_text(&notification_text("notifications/subscriptions/acknowledged", &params))
}

fn answer(
    server: &Arc<Server>,
    request: Recorded,
    reply: Reply,
    ticket: Ticket,
) -> Result<Response<Out>, io::Error> {
    let Reply { status, mut headers, content } = reply;
    let out = match content {
        Content::Result(_) | Content::Error(_) => {
            let text = match &content {
                Content::Result(raw) => result_text(&request.id_raw(), raw),
                Content::Error(raw) => error_text(&request.id_raw(), raw),
                _ => unreachable!("matched above"),
            };
            let as_sse = server.sse && status == 200;
            let media = if as_sse { "text/event-stream" } else { "application/json" };
            headers.push(("content-type".to_owned(), media.to_owned()));
            Out::full(if as_sse { event_text(&text) } else { text }.into(), ticket)
        }
        Content::Full(body) => Out::full(body, ticket),
        Content::CutJson { body, keep } => {
            let (sender, out) = Out::announcing(body.len() as u64, ticket);
            let _ = sender.try_send(Piece::Data(body.slice(..keep)));
            let _ = sender.try_send(Piece::Cut);
            out
        }
        Content::Script(script) => {
            let (sender, out) = Out::stream(ticket);
            tokio::spawn(play(server.book.clone(), request.clone(), script, sender));
            out
        }
        Content::Endless(piece) => {
            let (sender, out) = Out::stream(ticket);
            tokio::spawn(async move { while sender.send(Piece::Data(piece.clone())).await.is_ok() {} });
            out
        }
        Content::Drip { body, every } => {
            let (sender, out) = Out::announcing(body.len() as u64, ticket);
            tokio::spawn(drip(body, every, sender));
            out
        }
        Content::Hang | Content::Close => unreachable!("handled before there was a body"),
    };
    respond(server, &request, status, &headers, out)
}

fn respond(
    server: &Server,
    request: &Recorded,
    status: u16,
    headers: &[(String, String)],
    out: Out,
) -> Result<Response<Out>, io::Error> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    if (200..300).contains(&status)
        && let Some(session) = server.session_header(request)
    {
        response = response.header("mcp-session-id", session);
    }
    response.body(out).map_err(io::Error::other)
}

async fn drip(body: Bytes, every: std::time::Duration, sender: mpsc::Sender<Piece>) {
    let mut clock = tokio::time::interval(every);
    for at in 0..body.len() {
        clock.tick().await;
        if sender.send(Piece::Data(body.slice(at..=at))).await.is_err() {
            return;
        }
    }
}

/// Plays a script. It stops early when the client goes away or (legacy) cancels the request.
async fn play(book: Arc<Book>, request: Recorded, script: Script, sender: mpsc::Sender<Piece>) {
    let id = request.json["id"].clone();
    let cancelled = book.until(|all| all.iter().any(|one| rules::cancels(one, &id)).then_some(()));
    let mut cancelled = pin!(cancelled);
    let mut steps: std::collections::VecDeque<Step> = script.steps.into();
    while let Some(step) = steps.pop_front() {
        tokio::select! {
            biased;
            () = sender.closed() => return,
            () = &mut cancelled => return,
            more = take(&book, &request, step, &sender) => {
                for step in more.steps.into_iter().rev() {
                    steps.push_front(step);
                }
            }
        }
    }
}

/// Takes one step, and says what it leads to.
async fn take(book: &Book, request: &Recorded, step: Step, sender: &mpsc::Sender<Piece>) -> Script {
    let piece = match step {
        Step::Raw(bytes) => Piece::Data(bytes),
        Step::Result(raw) => Piece::Data(event_text(&result_text(&request.id_raw(), &raw)).into()),
        Step::Error(raw) => Piece::Data(event_text(&error_text(&request.id_raw(), &raw)).into()),
        Step::Cut => Piece::Cut,
        Step::Wait(gate) => {
            gate.notified().await;
            return Script::new();
        }
        Step::Hang => std::future::pending().await,
        Step::Posted(id, then) => {
            let posted = |all: &[Recorded]| {
                let later = &all[request.order..];
                later.iter().find(|one| one.is_response() && one.json["id"] == id).map(|one| one.json.clone())
            };
            return then(&book.until(posted).await);
        }
    };
    let _ = sender.send(piece).await;
    Script::new()
}
