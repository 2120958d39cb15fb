//! A strict fake MCP endpoint on loopback.
//!
//! It records what arrives, answers from a tiny surface or from a script, and fails the test when the client
//! broke a rule. `serve.rs` beside it has the wire; this file has what a test sees.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{net::TcpListener, task::JoinHandle, time::timeout};

use super::{
    Era, LIMIT,
    answers::Surface,
    authority::Authority,
    guard::{Guard, PrmPlace},
    record::{Fate, Recorded},
    reply::{Reply, event_text, notification_text},
    serve::{Server, accept_forever},
    skills::{CAPABILITIES, Offered, Skill},
    tls::Tls,
};

/// How an endpoint is to be; `start` makes it one.
#[must_use]
pub struct EndpointBuilder {
    server: Server,
    tls: Option<Tls>,
}

impl EndpointBuilder {
    fn new(era: Era) -> Self {
        Self { server: Server::new(era), tls: None }
    }

    fn surface(mut self, change: impl FnOnce(&mut Surface)) -> Self {
        change(self.server.surface.get_mut().unwrap());
        self
    }

    /// The tools, a JSON array, on one page.
    pub fn tools(self, raw: &str) -> Self {
        self.tool_pages(vec![raw.to_owned()])
    }

    /// The tools, a JSON array per page.
    pub fn tool_pages(self, pages: Vec<String>) -> Self {
        self.surface(|surface| surface.tool_pages = pages)
    }

    /// The resources, a JSON array.
    pub fn resources(self, raw: &str) -> Self {
        self.surface(|surface| raw.clone_into(&mut surface.resources))
    }

    /// The resource templates, a JSON array.
    pub fn templates(self, raw: &str) -> Self {
        self.surface(|surface| raw.clone_into(&mut surface.templates))
    }

    /// The prompts, a JSON array.
    pub fn prompts(self, raw: &str) -> Self {
        self.surface(|surface| raw.clone_into(&mut surface.prompts))
    }

    /// Skills, and the capabilities that go with them.
    pub fn skills(self, skills: &[Skill]) -> Self {
        self.capabilities(CAPABILITIES).surface(|surface| surface.skills = Some(Offered::new(skills)))
    }

    /// The server's capabilities, a JSON object.
    pub fn capabilities(self, raw: &str) -> Self {
        self.surface(|surface| raw.clone_into(&mut surface.capabilities))
    }

    /// The instructions, plain text.
    pub fn instructions(self, text: &str) -> Self {
        self.surface(|surface| surface.instructions = Some(serde_json::Value::from(text).to_string()))
    }

    /// No instructions at all.
    pub fn no_instructions(self) -> Self {
        self.surface(|surface| surface.instructions = None)
    }

    /// Name and version of the server, a JSON object.
    pub fn server_info(self, raw: &str) -> Self {
        self.surface(|surface| raw.clone_into(&mut surface.server_info))
    }

    /// Members for the `_meta` of every result of the surface, without the braces: `"surfaceHash":"abc"`.
    pub fn meta(self, members: &str) -> Self {
        self.surface(|surface| members.clone_into(&mut surface.meta))
    }

    /// The revision that `initialize` is answered with.
    pub fn version(self, version: &str) -> Self {
        self.surface(|surface| version.clone_into(&mut surface.version))
    }

    /// What listen streams acknowledge, a JSON object; by default all that was asked for.
    pub fn listen_filter(self, raw: &str) -> Self {
        self.surface(|surface| surface.listen_filter = Some(raw.to_owned()))
    }

    /// Issues a session id.
    pub fn sessions(mut self) -> Self {
        self.server.sessions = true;
        self
    }

    /// Answers requests as SSE where it would answer JSON.
    pub fn sse(mut self) -> Self {
        self.server.sse = true;
        self
    }

    /// Has a query in its URL, without which nothing is found.
    pub fn query(mut self, query: &str) -> Self {
        self.server.path = format!("{}?{query}", self.server.path);
        self
    }

    /// Answers GET with that status instead of a stream.
    pub fn refuse_get(mut self, status: u16) -> Self {
        self.server.refuse_get = Some(status);
        self
    }

    /// Unknown methods are answered -32601 without failing the test.
    pub fn allow_unknown(mut self) -> Self {
        self.server.allow_unknown = true;
        self
    }

    /// Several clients come at once, each of which counts its ids from the start: the same id may come twice.
    pub fn many_clients(mut self) -> Self {
        self.server.many_clients = true;
        self
    }

    /// Every request must show that bearer token.
    pub fn expect_bearer(mut self, token: &str) -> Self {
        self.server.bearer = Mutex::new(Some(token.to_owned()));
        self
    }

    fn guard(mut self, change: impl FnOnce(&mut Guard)) -> Self {
        change(self.server.guard.get_or_insert_with(Guard::new));
        self
    }

    /// Every request must show a token that this authorization server issued for this endpoint and that is good now, else
    /// it is answered 401. Said again, several servers are named, in that order, and the tokens of all are taken.
    pub fn protected_by(self, authority: &Authority) -> Self {
        self.guard(|guard| guard.authorities.push(authority.shared()))
    }

    /// Not protected, and yet requests for well-known documents are no violation: they are answered 404.
    pub fn answers_probes(self) -> Self {
        self.guard(|guard| guard.place = PrmPlace::None)
    }

    /// Where the document of the protected resource is; below the path by default.
    pub fn prm(self, place: PrmPlace) -> Self {
        self.guard(|guard| guard.place = place)
    }

    /// The status of the place where no such document is; 404 by default.
    pub fn prm_absent(self, status: u16) -> Self {
        self.guard(|guard| guard.absent = status)
    }

    /// Changes the document of the protected resource. A changed `resource` is what the authorization servers expect.
    pub fn prm_document(self, change: impl Fn(&mut serde_json::Value) + Send + Sync + 'static) -> Self {
        self.guard(|guard| guard.document = Some(Box::new(change)))
    }

    /// Replaces the fields `WWW-Authenticate` of refusals, given what would be said.
    pub fn challenge(self, fields: impl Fn(String) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.guard(|guard| guard.challenge = Some(Box::new(fields)))
    }

    /// No `resource_metadata` in challenges.
    pub fn no_challenge_pointer(self) -> Self {
        self.guard(|guard| guard.points = false)
    }

    /// The `scope` of 401 challenges; none by default.
    pub fn challenge_scope(self, scope: &str) -> Self {
        self.guard(|guard| guard.scope = Some(scope.to_owned()))
    }

    /// Calls of that tool need that scope, and are answered 403 without it.
    pub fn needs_scope(self, tool: &str, scope: &str) -> Self {
        self.guard(|guard| guard.needs.push((tool.to_owned(), scope.to_owned())))
    }

    /// A token that no authorization server of this endpoint issued is refused without failing the test.
    pub fn allow_foreign_tokens(self) -> Self {
        self.guard(|guard| guard.allow_foreign = true)
    }

    /// Cuts GET and listen streams when the token ends that they were opened with.
    pub fn streams_end_with_token(self) -> Self {
        self.guard(|guard| guard.ends_streams = true)
    }

    /// Is at another path than `/mcp`; before `query`.
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.server.path);
        self
    }

    /// Requests of that JSON-RPC method (or of the verb `GET` or `DELETE`) are answered by the handler.
    pub fn on(mut self, method: &str, handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        self.server.handlers.get_mut().unwrap().insert(method.to_owned(), Arc::new(handler));
        self
    }

    /// Speaks TLS, with a certificate for loopback from a private authority (see `Endpoint::ca_file`).
    pub fn tls(self) -> Self {
        self.tls_for(&["localhost", "127.0.0.1"])
    }

    /// Speaks TLS, with a certificate for those names.
    pub fn tls_for(mut self, names: &[&str]) -> Self {
        self.tls = Some(Tls::new(names));
        self
    }

    /// Listens on a free port.
    pub async fn start(self) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        if let Some(guard) = &self.server.guard {
            guard.started(format!("{scheme}://{address}{}", self.server.path));
        }
        let mut endpoint =
            Endpoint { server: Arc::new(self.server), tls: self.tls, address, accepting: None };
        endpoint.accept(listener);
        endpoint
    }
}

/// A running endpoint.
pub struct Endpoint {
    server: Arc<Server>,
    tls: Option<Tls>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// An endpoint of 2026-07-28.
    pub fn modern() -> EndpointBuilder {
        EndpointBuilder::new(Era::Modern)
    }

    /// An endpoint that knows `initialize` only.
    pub fn legacy() -> EndpointBuilder {
        EndpointBuilder::new(Era::Legacy)
    }

    /// An endpoint of that era.
    pub fn era(era: Era) -> EndpointBuilder {
        EndpointBuilder::new(era)
    }

    /// The URL to give to `--url`.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{}", self.address, self.server.path)
    }

    /// The root to give to `--ca-file`; only with `tls`.
    pub fn ca_file(&self) -> &Path {
        self.tls.as_ref().expect("an endpoint without TLS has no root").ca_file.path()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.book.requests()
    }

    /// All requests so far of that JSON-RPC method, or of that HTTP verb.
    pub fn requests_of(&self, method: &str) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| is_of(request, method)).collect()
    }

    /// Waits until the condition holds.
    pub async fn wait_for(&self, condition: impl Fn(&[Recorded]) -> bool) {
        self.server.book.expect("a condition", |requests| condition(requests).then_some(())).await;
    }

    /// Waits for the `nth` request (from 0) of that JSON-RPC method or HTTP verb.
    pub async fn arrived(&self, method: &str, nth: usize) -> Recorded {
        let what = format!("{method} number {nth}");
        let find = |requests: &[Recorded]| requests.iter().filter(|r| is_of(r, method)).nth(nth).cloned();
        self.server.book.expect(&what, find).await
    }

    /// Waits until the exchange with that order number has ended, and says how.
    pub async fn fate_of(&self, order: usize) -> Fate {
        let ended = |requests: &[Recorded]| {
            requests.get(order).map(|request| request.fate).filter(|fate| *fate != Fate::Open)
        };
        self.server.book.expect(&format!("the end of #{order}"), ended).await
    }

    /// Waits until the client has gone away from the exchange with that order number.
    pub async fn client_closed(&self, order: usize) {
        let fate = self.fate_of(order).await;
        assert_eq!(
            fate,
            Fate::ClosedByClient,
            "#{order} ended otherwise:\n{}",
            self.server.book.transcript()
        );
    }

    /// Lets one `sleep` call answer.
    pub fn wake(&self) {
        self.server.wake.notify_one();
    }

    /// Changes the handler of a method while running.
    pub fn set(&self, method: &str, handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) {
        self.server.handlers.lock().unwrap().insert(method.to_owned(), Arc::new(handler));
    }

    /// Changes the tools while running.
    pub fn set_tools(&self, raw: &str) {
        self.server.surface.lock().unwrap().tool_pages = vec![raw.to_owned()];
    }

    /// Changes anything of the surface while running, the era included.
    pub fn change(&self, change: impl FnOnce(&mut Surface)) {
        change(&mut self.server.surface.lock().unwrap());
    }

    /// Changes a file of a skill while running; the entry stays.
    pub fn set_file(&self, uri: &str, text: &str) {
        self.server.surface.lock().unwrap().skills.as_mut().expect("no skills").set(uri, text);
    }

    /// Changes the members of `_meta` while running.
    pub fn set_meta(&self, members: &str) {
        members.clone_into(&mut self.server.surface.lock().unwrap().meta);
    }

    /// Changes the bearer token that must be shown.
    pub fn set_bearer(&self, token: Option<&str>) {
        *self.server.bearer.lock().unwrap() = token.map(str::to_owned);
    }

    /// The session id that holds now.
    pub fn session(&self) -> Option<String> {
        self.server.session.lock().unwrap().current.clone()
    }

    /// Forgets the session: requests that carry it are answered 404 from now on.
    pub fn forget_session(&self) {
        self.server.session.lock().unwrap().forget();
    }

    /// Waits until that many GET streams are open.
    pub async fn get_streams(&self, count: usize) {
        self.server.streams_open("GET", count).await;
    }

    /// Waits until that many listen streams are open.
    pub async fn listens(&self, count: usize) {
        self.server.streams_open("subscriptions/listen", count).await;
    }

    /// Sends a message on every open GET stream.
    pub async fn push(&self, message: &str) {
        self.push_raw(&event_text(message)).await;
    }

    /// Sends bytes on every open GET stream.
    pub async fn push_raw(&self, text: &str) {
        self.server.push("GET", |_| text.to_owned()).await;
    }

    /// Sends a notification on every open listen stream, stamped with its subscription id. `params` are the
    /// members without the braces.
    pub async fn notify_listens(&self, method: &str, params: &str) {
        let comma = if params.is_empty() { "" } else { "," };
        let event = |id: &str| {
            let stamp = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
            event_text(&notification_text(method, &format!("{{{params}{comma}{stamp}}}")))
        };
        self.server.push("subscriptions/listen", event).await;
    }

    /// Ends every open listen stream with its result.
    pub async fn end_listens(&self) {
        self.server.end_listens().await;
    }

    /// Cuts every open GET stream.
    pub async fn cut_get_streams(&self) {
        self.server.cut("GET").await;
    }

    /// Cuts every open listen stream.
    pub async fn cut_listens(&self) {
        self.server.cut("subscriptions/listen").await;
    }

    /// Closes every connection and frees the port.
    pub async fn stop(&mut self) {
        self.server.book.stopping(true);
        if let Some(accepting) = self.accepting.take() {
            self.server.stop.notify_one();
            accepting.await.unwrap();
        }
        self.server.drop_streams();
    }

    /// Listens on the same port again, as a restarted server: sessions of before are unknown.
    pub async fn start_again(&mut self) {
        assert!(self.accepting.is_none(), "stop comes first");
        self.forget_session();
        self.server.book.stopping(false);
        let listener = timeout(LIMIT, bind_again(self.address)).await.expect("the port is taken");
        self.accept(listener);
    }

    /// Takes the violations so far, for a test that provokes them.
    pub fn take_violations(&self) -> Vec<String> {
        self.server.book.take_violations()
    }

    /// The end: panics when the client broke a rule.
    pub fn finish(self) {
        self.judge();
    }

    fn accept(&mut self, listener: TcpListener) {
        let tls = self.tls.as_ref().map(|tls| tls.acceptor.clone());
        self.accepting = Some(tokio::spawn(accept_forever(self.server.clone(), listener, tls)));
    }

    fn judge(&self) {
        let transcript = self.server.book.transcript();
        let violations = self.server.book.take_violations();
        assert!(violations.is_empty(), "the client broke {} rule(s):\n{transcript}", violations.len());
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
        if !std::thread::panicking() {
            self.judge();
        }
    }
}

/// Binds the port as soon as no other test has borrowed it for a connection of its own.
pub async fn bind_again(address: SocketAddr) -> TcpListener {
    let mut clock = tokio::time::interval(Duration::from_millis(20));
    loop {
        clock.tick().await;
        if let Ok(listener) = TcpListener::bind(address).await {
            return listener;
        }
    }
}

fn is_of(request: &Recorded, method: &str) -> bool {
    if request.method().is_empty() { request.verb == method } else { request.method() == method }
}
