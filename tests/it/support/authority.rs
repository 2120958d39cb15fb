//! A strict fake authorization server on loopback, and the person with the browser.
//!
//! It records what arrives, registers clients, approves, issues, renews and revokes tokens, and fails the test when the
//! client broke a rule. Scripts can override any answer.

mod ledger;
mod person;
mod rules;
mod seen;
mod serve;

use std::{
    collections::{BTreeMap, HashMap},
    io::Write as _,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinHandle,
    time::timeout,
};

pub use self::{
    ledger::{AuthMethod, KnownClient, Standing},
    person::{Page, get, send_raw, try_visit, visit},
    seen::AuthorityRequest,
    serve::Reply as AuthorityReply,
};
use self::{
    ledger::{Grant, Ledger, random},
    seen::Log,
    serve::accept_forever,
};
use super::{LIMIT, tls::Tls};

/// Where the metadata document is, for an issuer with a path (RFC 8414 §3.1, OpenID Connect Discovery §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataPlace {
    /// `/.well-known/oauth-authorization-server/tenant1`
    OauthInserted,
    /// `/.well-known/openid-configuration/tenant1`
    OpenIdInserted,
    /// `/tenant1/.well-known/openid-configuration`
    OpenIdAppended,
}

type Form = BTreeMap<String, String>;
type Change = Box<dyn Fn(&mut Value) + Send + Sync>;
type Registration = Box<dyn Fn(&Value) -> (u16, Value) + Send + Sync>;
type Grants = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;
type AuthorizeError = Box<dyn Fn(&Form) -> Option<(String, String)> + Send + Sync>;
type Redirect = Box<dyn Fn(&mut Vec<(String, String)>) + Send + Sync>;
type Loses = Box<dyn Fn(&Form, usize) -> bool + Send + Sync>;
type TokenHandler = Arc<dyn Fn(&Form, usize) -> Option<AuthorityReply> + Send + Sync>;
type Route = Arc<dyn Fn(&AuthorityRequest) -> AuthorityReply + Send + Sync>;

/// How the server is; it does not change while it runs.
struct Settings {
    path: String,
    place: MetadataPlace,
    registers: bool,
    registration: Option<Registration>,
    given: Vec<KnownClient>,
    documents: bool,
    scopes_supported: Option<Vec<String>>,
    grants: Option<Grants>,
    authorize_error: Option<AuthorizeError>,
    redirect: Option<Redirect>,
    announces_iss: bool,
    sends_iss: bool,
    iss: Option<String>,
    token_life: Option<u64>,
    says_expires_in: bool,
    refresh_tokens: bool,
    rotates: bool,
    exact_port: bool,
    allow_reuse: bool,
    slow: Option<Duration>,
    loses_token_answer: Option<Loses>,
}

/// The state of one server, shared by its connections, and by the endpoints that it protects.
pub struct Shared {
    settings: Settings,
    origin: String,
    ledger: Mutex<Ledger>,
    log: Log,
    metadata_changes: Mutex<Vec<Change>>,
    token_handler: Mutex<Option<TokenHandler>>,
    routes: Mutex<HashMap<String, Route>>,
    flowing: watch::Sender<bool>,
    stop: Notify,
}

impl Shared {
    /// How it spells itself.
    pub fn issuer(&self) -> String {
        format!("{}{}", self.origin, self.settings.path)
    }

    /// Tokens may be asked for, for that resource.
    pub fn protects(&self, resource: &str) {
        self.ledger.lock().unwrap().resources.insert(resource.to_owned());
    }

    /// What a bearer token is good for now.
    pub fn standing(&self, token: &str) -> Standing {
        self.ledger.lock().unwrap().standing(token)
    }
}

/// How an authorization server is to be; `start` makes it one.
#[must_use]
pub struct AuthorityBuilder {
    settings: Settings,
    metadata_changes: Vec<Change>,
    token_handler: Option<TokenHandler>,
    routes: HashMap<String, Route>,
    allowed: Vec<String>,
    tls: Option<Tls>,
}

impl AuthorityBuilder {
    fn new() -> Self {
        let settings = Settings {
            path: String::new(),
            place: MetadataPlace::OauthInserted,
            registers: true,
            registration: None,
            given: Vec::new(),
            documents: false,
            scopes_supported: None,
            grants: None,
            authorize_error: None,
            redirect: None,
            announces_iss: true,
            sends_iss: true,
            iss: None,
            token_life: Some(3600),
            says_expires_in: true,
            refresh_tokens: true,
            rotates: true,
            exact_port: false,
            allow_reuse: false,
            slow: None,
            loses_token_answer: None,
        };
        Self {
            settings,
            metadata_changes: Vec::new(),
            token_handler: None,
            routes: HashMap::new(),
            allowed: Vec::new(),
            tls: None,
        }
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Access tokens end after that many seconds, and `expires_in` says so.
    pub fn token_life(self, seconds: u64) -> Self {
        self.set(|settings| settings.token_life = Some(seconds))
    }

    /// No `expires_in` in answers; tokens end all the same.
    pub fn no_expires_in(self) -> Self {
        self.set(|settings| settings.says_expires_in = false)
    }

    /// No refresh tokens at all.
    pub fn no_refresh_token(self) -> Self {
        self.set(|settings| settings.refresh_tokens = false)
    }

    /// A refresh is answered without a refresh token, and the old one stays good.
    pub fn keep_refresh_token(self) -> Self {
        self.set(|settings| settings.rotates = false)
    }

    /// The path of the issuer: `/tenant1`. Its endpoints are below it.
    pub fn path(self, path: &str) -> Self {
        self.set(|settings| path.clone_into(&mut settings.path))
    }

    /// Where the metadata document is.
    pub fn metadata_at(self, place: MetadataPlace) -> Self {
        self.set(|settings| settings.place = place)
    }

    /// Changes the metadata document.
    pub fn metadata(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.metadata_changes.push(Box::new(change));
        self
    }

    /// Registers nobody, and names no registration endpoint.
    pub fn no_registration(self) -> Self {
        self.set(|settings| settings.registers = false)
    }

    /// Knows a client from the start. It may be called back at any port of 127.0.0.1, on `/callback`. Metadata names the
    /// methods of such clients (and `none`, where there is registration).
    pub fn client(self, id: &str, secret: Option<&str>, method: AuthMethod) -> Self {
        let client = KnownClient {
            id: id.to_owned(),
            secret: secret.map(str::to_owned),
            secret_expires_at: None,
            method,
            redirect_uris: Vec::new(),
            registered: false,
        };
        self.set(|settings| settings.given.push(client))
    }

    /// The client that was given last has that redirect URI.
    pub fn redirect_uri(self, uri: &str) -> Self {
        self.set(|settings| {
            settings.given.last_mut().expect("no client").redirect_uris.push(uri.to_owned());
        })
    }

    /// Answers a registration by that: a status and a JSON body. What it names is registered when the status is good.
    pub fn registration(self, answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.registration = Some(Box::new(answer)))
    }

    /// Takes the https URL of a metadata document as a client id, and says so.
    pub fn client_id_documents(self) -> Self {
        self.set(|settings| settings.documents = true)
    }

    /// The `scopes_supported` of the metadata.
    pub fn scopes_supported(self, scopes: &[&str]) -> Self {
        let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
        self.set(|settings| settings.scopes_supported = Some(scopes))
    }

    /// What is granted when that was asked for (empty: nothing). `None`: as asked, and the answer has no `scope`. By
    /// default as asked, and the answer repeats it.
    pub fn grants(self, grants: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.grants = Some(Box::new(grants)))
    }

    /// Redirects with an error (code and description) instead of a code, where that says so of the query.
    pub fn authorize_error(
        self,
        refuses: impl Fn(&BTreeMap<String, String>) -> Option<(String, String)> + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.authorize_error = Some(Box::new(refuses)))
    }

    /// Changes the parameters that the redirect carries.
    pub fn redirect(self, change: impl Fn(&mut Vec<(String, String)>) + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.redirect = Some(Box::new(change)))
    }

    /// Neither announces nor sends `iss`.
    pub fn no_iss(self) -> Self {
        self.announces_iss(false).sends_iss(false)
    }

    /// Sends that as `iss`.
    pub fn iss(self, iss: &str) -> Self {
        self.set(|settings| settings.iss = Some(iss.to_owned()))
    }

    /// Whether the metadata announces `iss`.
    pub fn announces_iss(self, yes: bool) -> Self {
        self.set(|settings| settings.announces_iss = yes)
    }

    /// Whether the redirect has an `iss`.
    pub fn sends_iss(self, yes: bool) -> Self {
        self.set(|settings| settings.sends_iss = yes)
    }

    /// Redirect URIs have to have the port that was registered.
    pub fn exact_redirect_port(self) -> Self {
        self.set(|settings| settings.exact_port = true)
    }

    /// A spent refresh token is no violation; the grant is revoked all the same.
    pub fn allow_reuse(self) -> Self {
        self.set(|settings| settings.allow_reuse = true)
    }

    /// Token requests are processed at once and answered that much later.
    pub fn slow_token(self, delay: Duration) -> Self {
        self.set(|settings| settings.slow = Some(delay))
    }

    /// Answers a token request (its form, its number from 0); `None`: as usual. Such an answer changes nothing: no code
    /// and no refresh token is used up. Status 0 closes the connection without an answer.
    pub fn on_token(
        mut self,
        handler: impl Fn(&BTreeMap<String, String>, usize) -> Option<AuthorityReply> + Send + Sync + 'static,
    ) -> Self {
        self.token_handler = Some(Arc::new(handler));
        self
    }

    /// Token requests that are processed as usual, and whose answer is lost: the connection is closed.
    pub fn loses_token_answer(
        self,
        loses: impl Fn(&BTreeMap<String, String>, usize) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.loses_token_answer = Some(Box::new(loses)))
    }

    /// Answers requests for that path (without the query) by that; requests for endpoints are still judged. Not for the
    /// token endpoint, which has `on_token`.
    pub fn on(
        mut self,
        path: &str,
        route: impl Fn(&AuthorityRequest) -> AuthorityReply + Send + Sync + 'static,
    ) -> Self {
        self.routes.insert(path.to_owned(), Arc::new(route));
        self
    }

    /// Violations with those words do not count.
    pub fn allow(mut self, words: &str) -> Self {
        self.allowed.push(words.to_owned());
        self
    }

    /// Speaks TLS, with a certificate for loopback from a private root (see `Authority::ca_file`).
    pub fn tls(mut self) -> Self {
        self.tls = Some(Tls::new(&["localhost", "127.0.0.1"]));
        self
    }

    /// Listens on a free port.
    pub async fn start(self) -> Authority {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let clients = self.settings.given.iter().map(|client| (client.id.clone(), client.clone()));
        let ledger = Ledger { clients: clients.collect(), ..Ledger::default() };
        let shared = Shared {
            settings: self.settings,
            origin: format!("{scheme}://{address}"),
            ledger: Mutex::new(ledger),
            log: Log::default(),
            metadata_changes: Mutex::new(self.metadata_changes),
            token_handler: Mutex::new(self.token_handler),
            routes: Mutex::new(self.routes),
            flowing: watch::Sender::new(true),
            stop: Notify::new(),
        };
        self.allowed.iter().for_each(|words| shared.log.allow(words));
        let mut authority = Authority { shared: Arc::new(shared), tls: self.tls, address, accepting: None };
        authority.accept(listener);
        authority
    }
}

/// A running authorization server.
pub struct Authority {
    shared: Arc<Shared>,
    tls: Option<Tls>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Authority {
    /// Registers clients, wants PKCE, approves everything, rotates refresh tokens and revokes the grant when a spent one
    /// comes back, announces and sends `iss`; tokens last an hour.
    pub fn builder() -> AuthorityBuilder {
        AuthorityBuilder::new()
    }

    /// How it spells itself.
    pub fn issuer(&self) -> String {
        self.shared.issuer()
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What endpoints need to know of it.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Its root; only with `tls`.
    pub fn ca_file(&self) -> &Path {
        self.tls.as_ref().expect("an authorization server without TLS has no root").ca_file.path()
    }

    /// One file for `--ca-file`, with its own root and another one.
    pub fn ca_file_with(&self, other: &Path) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        for path in [self.ca_file(), other] {
            file.write_all(&std::fs::read(path).unwrap()).unwrap();
            file.write_all(b"\n").unwrap();
        }
        file
    }

    /// Tokens may be asked for, for that resource too. An endpoint that is protected by this server says so by itself.
    pub fn protects(&self, resource: &str) {
        self.shared.protects(resource);
    }

    /// The metadata document as it is now.
    pub fn metadata(&self) -> Value {
        self.shared.metadata()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<AuthorityRequest> {
        self.shared.log.requests()
    }

    /// All requests so far for that endpoint: `/token`.
    pub fn requests_of(&self, place: &str) -> Vec<AuthorityRequest> {
        self.requests().into_iter().filter(|request| request.is_for(place)).collect()
    }

    /// Waits until the condition holds.
    pub async fn wait_for(&self, condition: impl Fn(&[AuthorityRequest]) -> bool) {
        self.shared.log.expect(condition).await;
    }

    /// Waits for the `nth` request (from 0) for that endpoint.
    pub async fn arrived(&self, place: &str, nth: usize) -> AuthorityRequest {
        self.wait_for(|all| all.iter().filter(|request| request.is_for(place)).count() > nth).await;
        self.requests_of(place).swap_remove(nth)
    }

    /// How many refreshes arrived, whatever became of them.
    pub fn refreshes(&self) -> usize {
        self.requests().iter().filter(|request| request.is_refresh()).count()
    }

    /// How often a spent refresh token was presented.
    pub fn spent_reuses(&self) -> usize {
        self.shared.ledger.lock().unwrap().spent_reuses
    }

    /// The tokens that clients asked to revoke.
    pub fn revoked(&self) -> Vec<String> {
        self.shared.ledger.lock().unwrap().revoked.clone()
    }

    /// Whether an access token is good now.
    pub fn accepts(&self, token: &str) -> bool {
        matches!(self.shared.standing(token), Standing::Good { .. })
    }

    /// Whether a refresh token would renew something now.
    pub fn renews(&self, token: &str) -> bool {
        let ledger = self.shared.ledger.lock().unwrap();
        let refresh = ledger.refresh.get(token);
        refresh.is_some_and(|refresh| !refresh.spent && !ledger.grants[refresh.grant].revoked)
    }

    /// All grants are over: no token is good, old or to come.
    pub fn revoke_everything(&self) {
        self.shared.ledger.lock().unwrap().grants.iter_mut().for_each(|grant| grant.revoked = true);
    }

    /// All access tokens are over, as if their time had come; refresh tokens live.
    pub fn expire_everything(&self) {
        self.shared.ledger.lock().unwrap().end_all_access();
    }

    /// One access token is over.
    pub fn expire(&self, access: &str) {
        assert!(self.shared.ledger.lock().unwrap().end_access(access), "never issued: {access}");
    }

    /// No registered client is known any more; those that were given are.
    pub fn forget_clients(&self) {
        let mut ledger = self.shared.ledger.lock().unwrap();
        let (gone, stay) = std::mem::take(&mut ledger.clients).into_iter().partition(|(_, c)| c.registered);
        ledger.clients = stay;
        let gone: BTreeMap<String, KnownClient> = gone;
        ledger.forgotten.extend(gone.into_keys());
    }

    /// All clients known now.
    pub fn clients(&self) -> Vec<KnownClient> {
        self.shared.ledger.lock().unwrap().clients.values().cloned().collect()
    }

    /// The client that `issue` issues for: the first given one, else one that is registered for it.
    pub fn stored_client(&self) -> KnownClient {
        if let Some(given) = self.shared.settings.given.first() {
            return given.clone();
        }
        let mut ledger = self.shared.ledger.lock().unwrap();
        let client = KnownClient {
            id: format!("stored-client-{}", self.port()),
            secret: None,
            secret_expires_at: None,
            method: AuthMethod::None,
            redirect_uris: vec!["http://127.0.0.1:49152/callback".to_owned()],
            registered: true,
        };
        if !ledger.forgotten.contains(&client.id) {
            ledger.clients.entry(client.id.clone()).or_insert_with(|| client.clone());
        }
        client
    }

    /// Tokens made without a sign-in, for `stored_client`: access and refresh.
    pub fn issue(&self, resource: &str, scopes: &str) -> (String, String) {
        let client = self.stored_client().id;
        let mut ledger = self.shared.ledger.lock().unwrap();
        let number = ledger.grants.len();
        let said = Some(scopes.to_owned()).filter(|scopes| !scopes.is_empty());
        ledger.resources.insert(resource.to_owned());
        ledger.grants.push(Grant {
            client,
            resource: resource.to_owned(),
            granted: scopes.to_owned(),
            said,
            revoked: false,
        });
        let access = ledger.new_access(number, self.shared.settings.token_life);
        (access, ledger.new_refresh(number))
    }

    /// A bearer token that this server has never issued.
    pub fn foreign_token() -> String {
        random("foreign")
    }

    /// Changes who answers token requests.
    pub fn set_token_handler(
        &self,
        handler: impl Fn(&BTreeMap<String, String>, usize) -> Option<AuthorityReply> + Send + Sync + 'static,
    ) {
        *self.shared.token_handler.lock().unwrap() = Some(Arc::new(handler));
    }

    /// Changes the metadata document.
    pub fn set_metadata(&self, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.shared.metadata_changes.lock().unwrap().push(Box::new(change));
    }

    /// Changes who answers requests for a path.
    pub fn set(
        &self,
        path: &str,
        route: impl Fn(&AuthorityRequest) -> AuthorityReply + Send + Sync + 'static,
    ) {
        self.shared.routes.lock().unwrap().insert(path.to_owned(), Arc::new(route));
    }

    /// Token requests are processed and not answered until `release_tokens`.
    pub fn hold_tokens(&self) {
        self.shared.flowing.send_replace(false);
    }

    /// Answers what was held.
    pub fn release_tokens(&self) {
        self.shared.flowing.send_replace(true);
    }

    /// Opens a link as a browser does, and follows nothing.
    pub async fn open(&self, link: &str) -> Page {
        self.browse(link, "").await
    }

    /// The person says yes; the location that the browser is sent to.
    pub async fn approve(&self, link: &str) -> String {
        location(link, &self.browse(link, "").await)
    }

    /// The person says no; the location that the browser is sent to.
    pub async fn refuse(&self, link: &str) -> String {
        location(link, &self.browse(link, "x-person: denies\r\n").await)
    }

    /// The browser goes to that location; status and body.
    pub async fn visit(&self, location: &str) -> (u16, String) {
        visit(location).await
    }

    /// The person says yes, and the browser follows.
    pub async fn sign_in(&self, link: &str) -> (u16, String) {
        visit(&self.approve(link).await).await
    }

    /// The person says no, and the browser follows.
    pub async fn deny(&self, link: &str) -> (u16, String) {
        visit(&self.refuse(link).await).await
    }

    async fn browse(&self, link: &str, more: &str) -> Page {
        let root = self.tls.as_ref().map(|tls| tls.ca_file.path());
        let page = get(link, more, root).await;
        page.unwrap_or_else(|| panic!("nobody answers at {link}"))
    }

    /// Closes every connection and frees the port.
    pub async fn stop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            self.shared.stop.notify_one();
            accepting.await.unwrap();
        }
    }

    /// Listens on the same port again; it has forgotten nothing.
    pub async fn start_again(&mut self) {
        assert!(self.accepting.is_none(), "stop comes first");
        let binding = super::endpoint::bind_again(self.address);
        let listener = timeout(LIMIT, binding).await.expect("the port is taken");
        self.accept(listener);
    }

    /// Violations with those words do not count from now on.
    pub fn allow(&self, words: &str) {
        self.shared.log.allow(words);
    }

    /// Takes the violations so far, for a test that provokes them.
    pub fn take_violations(&self) -> Vec<String> {
        self.shared.log.take_violations()
    }

    /// The end: panics when the client broke a rule.
    pub fn finish(self) {
        self.judge();
    }

    fn accept(&mut self, listener: TcpListener) {
        let tls = self.tls.as_ref().map(|tls| tls.acceptor.clone());
        self.accepting = Some(tokio::spawn(accept_forever(self.shared.clone(), listener, tls)));
    }

    fn judge(&self) {
        let transcript = self.shared.log.transcript();
        let violations = self.take_violations();
        let count = violations.len();
        assert!(violations.is_empty(), "the client broke {count} rule(s) of the authority:\n{transcript}");
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
        if !std::thread::panicking() {
            self.judge();
        }
    }
}

fn location(link: &str, page: &Page) -> String {
    let location = page.header("location").filter(|_| page.status == 302);
    location.unwrap_or_else(|| panic!("no redirect from {link}: {page:?}")).to_owned()
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}
