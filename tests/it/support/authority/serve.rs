//! The wire of the authorization server, and what it answers by itself.

use std::{collections::BTreeMap, convert::Infallible, io, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::{
    MetadataPlace, Shared,
    ledger::{AuthMethod, Code, Grant, KnownClient, random},
    rules::{self, Asked, Judgement},
    seen::{AuthorityRequest, decoded},
};

/// Status (0 closes the connection without an answer), headers and body.
pub type Reply = (u16, Vec<(String, String)>, String);

fn json_reply(status: u16, body: &Value) -> Reply {
    let headers = [("content-type", "application/json"), ("cache-control", "no-store")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (status, headers.to_vec(), body.to_string())
}

fn page(status: u16, text: &str) -> Reply {
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    (status, headers, format!("<!doctype html><p>{text}</p>"))
}

fn error(code: &str) -> Reply {
    let status = if code == "invalid_client" { 401 } else { 400 };
    json_reply(status, &json!({"error": code, "error_description": format!("the fake says {code}")}))
}

/// Accepts connections until it is told to stop, and has closed them all when it returns.
pub async fn accept_forever(shared: Arc<Shared>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = shared.stop.notified() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted.unwrap().0,
        };
        let (shared, tls) = (shared.clone(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => connection(shared, stream).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(shared, stream).await;
                    }
                }
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(shared: Arc<Shared>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(move |request| exchange(shared.clone(), request));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn exchange(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let request = AuthorityRequest::new(head.method.as_str(), &head.uri.to_string(), headers, body);
    let request = shared.log.record(request);
    let (status, headers, body) = shared.answer(&request);
    if request.is_for("/token") {
        if let Some(delay) = shared.settings.slow {
            tokio::time::sleep(delay).await;
        }
        let _ = shared.flowing.subscribe().wait_for(|on| *on).await;
    }
    shared.log.answered(request.order, status);
    if status == 0 {
        return Err(io::Error::other("closed, as the script says"));
    }
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Full::new(Bytes::from(body))).map_err(io::Error::other)
}

impl Shared {
    fn answer(&self, request: &AuthorityRequest) -> Reply {
        let base = &self.settings.path;
        let own = request.path.strip_prefix(base.as_str()).unwrap_or_default();
        let route = self.routes.lock().unwrap().get(&request.path).cloned();
        match own {
            "/authorize" => self.authorize(request, route),
            "/token" => self.token(request),
            "/register" if self.settings.registers => self.register(request, route),
            "/revoke" => self.revoke(request, route),
            _ => self.other(request, route),
        }
    }

    fn note(&self, request: &AuthorityRequest, judgement: &Judgement) {
        for broken in &judgement.broken {
            let AuthorityRequest { order, method, path, .. } = request;
            self.log.violation(format!("#{order} {method} {path}: {broken}"));
        }
    }

    fn other(&self, request: &AuthorityRequest, route: Option<super::Route>) -> Reply {
        let judgement = rules::metadata(request);
        self.note(request, &judgement);
        if let Some(route) = route {
            return route(request);
        }
        if request.path == self.metadata_path() {
            return match judgement.error {
                None => json_reply(200, &self.metadata()),
                Some(code) => error(code),
            };
        }
        if !request.path.contains("/.well-known/") && request.path != "/favicon.ico" {
            let AuthorityRequest { order, method, path, .. } = request;
            self.log.violation(format!("#{order} {method} {path}: a path that nobody named"));
        }
        page(404, "nothing here")
    }

    fn metadata_path(&self) -> String {
        let path = self.settings.path.as_str();
        match self.settings.place {
            MetadataPlace::OauthInserted => format!("/.well-known/oauth-authorization-server{path}"),
            MetadataPlace::OpenIdInserted => format!("/.well-known/openid-configuration{path}"),
            MetadataPlace::OpenIdAppended => format!("{path}/.well-known/openid-configuration"),
        }
    }

    /// The document, with all changes.
    pub fn metadata(&self) -> Value {
        let settings = &self.settings;
        let issuer = self.issuer();
        let mut methods: Vec<&str> = settings.given.iter().map(|client| client.method.name()).collect();
        if methods.is_empty() {
            methods = vec!["none", "client_secret_post", "client_secret_basic"];
        } else if settings.registers || settings.documents {
            methods.push("none");
        }
        methods.sort_unstable();
        methods.dedup();
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "revocation_endpoint": format!("{issuer}/revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "code_challenge_methods_supported": ["S256"],
        });
        if settings.registers {
            document["registration_endpoint"] = format!("{issuer}/register").into();
        }
        if settings.announces_iss {
            document["authorization_response_iss_parameter_supported"] = true.into();
        }
        if settings.documents {
            document["client_id_metadata_document_supported"] = true.into();
        }
        if let Some(scopes) = &settings.scopes_supported {
            document["scopes_supported"] = scopes.clone().into();
        }
        for change in self.metadata_changes.lock().unwrap().iter() {
            change(&mut document);
        }
        document
    }

    fn authorize(&self, request: &AuthorityRequest, route: Option<super::Route>) -> Reply {
        let settings = &self.settings;
        let endpoint = self.metadata()["authorization_endpoint"].as_str().unwrap_or_default().to_owned();
        let own = endpoint.split_once('?').map(|(_, query)| decoded(query.as_bytes())).unwrap_or_default();
        let mut ledger = self.ledger.lock().unwrap();
        let asked =
            Asked { own, exact_port: settings.exact_port, documents: settings.documents, ledger: &ledger };
        let judgement = rules::authorization(request, &asked);
        self.note(request, &judgement);
        let value = |name: &str| request.query.get(name).cloned().unwrap_or_default();
        let (state, challenge) = (value("state"), value("code_challenge"));
        ledger.states.entry(state.clone()).or_insert_with(|| request.raw_query.clone());
        ledger.challenges.entry(challenge.clone()).or_insert_with(|| state.clone());
        if let Some(route) = route {
            drop(ledger);
            return route(request);
        }
        let (Some(client), None) = (judgement.client, judgement.error) else {
            return page(400, &format!("This link is wrong: {}", judgement.error.unwrap_or_default()));
        };
        let mut pairs = Vec::new();
        let refusal = match &settings.authorize_error {
            Some(refuses) => refuses(&request.query),
            None => None,
        };
        let denied = || ("access_denied".to_owned(), "The person said no.".to_owned());
        let refusal = refusal.or_else(|| (request.header("x-person") == Some("denies")).then(denied));
        match refusal {
            Some((code, description)) => {
                pairs.push(("error".to_owned(), code));
                pairs.push(("error_description".to_owned(), description));
            }
            None => {
                let scope = value("scope");
                let said = match &settings.grants {
                    Some(grants) => grants(&scope),
                    None => Some(scope.clone()).filter(|scope| !scope.is_empty()),
                };
                let granted = said.clone().unwrap_or(scope);
                let code = random("code");
                let redirect_uri = value("redirect_uri");
                let resource = value("resource");
                let what = Code { client, redirect_uri, challenge, resource, granted, said, used: None };
                ledger.codes.insert(code.clone(), what);
                pairs.push(("code".to_owned(), code));
            }
        }
        pairs.push(("state".to_owned(), state));
        if settings.sends_iss {
            pairs.push(("iss".to_owned(), settings.iss.clone().unwrap_or_else(|| self.issuer())));
        }
        if let Some(change) = &settings.redirect {
            change(&mut pairs);
        }
        let mut location = Url::parse(&value("redirect_uri")).unwrap();
        location.query_pairs_mut().extend_pairs(&pairs);
        (302, vec![("location".to_owned(), location.to_string())], String::new())
    }

    fn register(&self, request: &AuthorityRequest, route: Option<super::Route>) -> Reply {
        let judgement = rules::registration(request);
        self.note(request, &judgement);
        if let Some(route) = route {
            return route(request);
        }
        if judgement.error.is_some() {
            return error("invalid_client_metadata");
        }
        let (status, body) = match &self.settings.registration {
            Some(registration) => registration(&request.json),
            None => {
                let mut body = request.json.clone();
                body["client_id"] = random("client").into();
                body["client_id_issued_at"] = super::now().into();
                if body["token_endpoint_auth_method"] != "none" {
                    body["client_secret"] = random("secret").into();
                    body["client_secret_expires_at"] = 0.into();
                }
                (201, body)
            }
        };
        if let (true, Some(id)) = ((200..300).contains(&status), body["client_id"].as_str()) {
            let either = |name: &str| body.get(name).unwrap_or(&request.json[name]).clone();
            let uris = either("redirect_uris").as_array().cloned().unwrap_or_default();
            let method = either("token_endpoint_auth_method");
            let client = KnownClient {
                id: id.to_owned(),
                secret: body["client_secret"].as_str().map(str::to_owned),
                secret_expires_at: body["client_secret_expires_at"].as_u64(),
                method: method.as_str().and_then(AuthMethod::named).unwrap_or(AuthMethod::Basic),
                redirect_uris: uris.iter().filter_map(|uri| uri.as_str().map(str::to_owned)).collect(),
                registered: true,
            };
            self.ledger.lock().unwrap().clients.insert(client.id.clone(), client);
        }
        json_reply(status, &body)
    }

    fn token(&self, request: &AuthorityRequest) -> Reply {
        let mut ledger = self.ledger.lock().unwrap();
        let nth = ledger.token_requests;
        ledger.token_requests += 1;
        let mut judgement = rules::token(request, &ledger, self.settings.documents);
        let presented = request.form.get("refresh_token").cloned().unwrap_or_default();
        let spent =
            ledger.refresh.get(&presented).filter(|refresh| refresh.spent).map(|refresh| refresh.grant);
        if let Some(grant) = spent {
            ledger.spent_reuses += 1;
            ledger.grants[grant].revoked = true;
            judgement.error.get_or_insert("invalid_grant");
            if !self.settings.allow_reuse {
                judgement.broken.push("a refresh token that was spent; the grant is revoked".to_owned());
            }
        }
        self.note(request, &judgement);
        drop(ledger);
        let handler = self.token_handler.lock().unwrap().clone();
        if let Some(reply) = handler.and_then(|handler| handler(&request.form, nth)) {
            return reply;
        }
        if let Some(code) = judgement.error {
            // a code that comes twice ends what came of it the first time (RFC 6749 §4.1.2)
            let mut ledger = self.ledger.lock().unwrap();
            let code_used = request.form.get("code").and_then(|code| ledger.codes.get(code)?.used);
            if let Some(grant) = code_used {
                ledger.grants[grant].revoked = true;
            }
            return error(code);
        }
        let reply = json_reply(200, &self.issue_for(&request.form, &presented));
        match &self.settings.loses_token_answer {
            Some(loses) if loses(&request.form, nth) => (0, Vec::new(), String::new()),
            _ => reply,
        }
    }

    /// The answer to a token request that is right.
    fn issue_for(&self, form: &BTreeMap<String, String>, presented: &str) -> Value {
        let settings = &self.settings;
        let mut ledger = self.ledger.lock().unwrap();
        let mut refresh = None;
        let grant = match form.get("code") {
            Some(code) => {
                let number = ledger.grants.len();
                let code = ledger.codes.get_mut(code).unwrap();
                code.used = Some(number);
                let Code { client, resource, granted, said, .. } = code.clone();
                ledger.grants.push(Grant { client, resource, granted, said, revoked: false });
                if settings.refresh_tokens {
                    refresh = Some(ledger.new_refresh(number));
                }
                number
            }
            None => {
                let grant = ledger.refresh[presented].grant;
                if settings.rotates {
                    ledger.refresh.get_mut(presented).unwrap().spent = true;
                    refresh = Some(ledger.new_refresh(grant));
                }
                grant
            }
        };
        let mut answer = json!({
            "access_token": ledger.new_access(grant, settings.token_life),
            "token_type": "Bearer",
        });
        if let (true, Some(life)) = (settings.says_expires_in, settings.token_life) {
            answer["expires_in"] = life.into();
        }
        if let Some(refresh) = refresh {
            answer["refresh_token"] = refresh.into();
        }
        if let Some(said) = &ledger.grants[grant].said {
            answer["scope"] = said.clone().into();
        }
        answer
    }

    fn revoke(&self, request: &AuthorityRequest, route: Option<super::Route>) -> Reply {
        let mut ledger = self.ledger.lock().unwrap();
        let judgement = rules::revocation(request, &ledger, self.settings.documents);
        self.note(request, &judgement);
        let token = request.form.get("token").cloned().unwrap_or_default();
        ledger.revoked.push(token.clone());
        if let Some(route) = route {
            drop(ledger);
            return route(request);
        }
        if let Some(code) = judgement.error {
            return error(code);
        }
        match ledger.refresh.get(&token).map(|refresh| refresh.grant) {
            Some(grant) => ledger.grants[grant].revoked = true,
            None => {
                ledger.end_access(&token);
            }
        }
        (200, Vec::new(), String::new())
    }
}
