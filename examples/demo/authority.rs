//! The demo authorization server, on a port of its own: OAuth 2.1 as MCP asks for it, and a person who says yes at once.
//!
//! It is as strict as the endpoint. Whatever breaks a rule of the standards is refused and remembered, and the story
//! fails on it: a code without its verifier, a token for another resource, a refresh token that was spent already.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Result;
use crate::server::{self, Answer, Server, unguessable};

/// The running authorization server. Dropping it closes the port.
pub(crate) struct Authority {
    pub(crate) issuer: String,
    desk: Arc<Desk>,
    _server: Server,
}

/// What its story is about; one person signs in here, so there is one grant at most.
#[derive(Default)]
struct Book {
    /// The redirect URI of each client, by the id that it was given.
    clients: HashMap<String, String>,
    codes: HashMap<String, Code>,
    access: Option<String>,
    refresh: Option<String>,
    count: Count,
    broken: Option<String>,
}

/// How often something happened.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Count {
    pub(crate) registrations: usize,
    pub(crate) sign_ins: usize,
    pub(crate) renewals: usize,
    pub(crate) revocations: usize,
}

/// What a code is good for (RFC 7636 §4.4, RFC 8707 §2).
struct Code {
    client: String,
    redirect_uri: String,
    challenge: String,
}

pub(crate) struct Desk {
    issuer: String,
    /// The one resource that tokens are given out for.
    resource: String,
    book: Mutex<Book>,
}

impl Authority {
    /// Opens a port, and gives out tokens for this resource.
    pub(crate) async fn start(resource: &str) -> Result<Self> {
        let listener = server::listener().await?;
        let issuer = format!("http://{}", listener.local_addr()?);
        let desk =
            Arc::new(Desk { issuer: issuer.clone(), resource: resource.to_owned(), book: Mutex::default() });
        let serving = Arc::clone(&desk);
        let server = Server::start(listener, move |request| {
            let desk = Arc::clone(&serving);
            async move { desk.serve(request).await }
        });
        Ok(Self { issuer, desk, _server: server })
    }

    /// What the endpoint needs in order to recognise the tokens.
    pub(crate) fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// From now on the access token is good for nothing; the refresh token still is.
    pub(crate) fn expire(&self) {
        self.desk.book().access = None;
    }

    /// Whether any token is still good.
    pub(crate) fn has_tokens(&self) -> bool {
        let book = self.desk.book();
        book.access.is_some() || book.refresh.is_some()
    }

    pub(crate) fn count(&self) -> Count {
        self.desk.book().count
    }

    /// The first rule that was broken, if one was.
    pub(crate) fn broken(&self) -> Option<String> {
        self.desk.book().broken.clone()
    }
}

impl Desk {
    /// Where the authorization servers of the protected resource are named (RFC 9728 §3.3).
    pub(crate) fn protected_resource_metadata(&self) -> Value {
        json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": ["lighthouse"],
            "bearer_methods_supported": ["header"],
        })
    }

    /// Whether the value of an `Authorization` header is good for a request.
    pub(crate) fn lets_in(&self, authorization: Option<&str>) -> bool {
        let book = self.book();
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        token.is_some() && token == book.access.as_deref()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, request: Request<Incoming>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let query = pairs(head.uri.query().unwrap_or_default().as_bytes());
        let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
            return self.refuse("invalid_request", "a body that is too large or broken");
        };
        let body = body.to_bytes();
        match (head.method, head.uri.path()) {
            (Method::GET, "/.well-known/oauth-authorization-server") => server::json(&self.metadata()),
            (Method::POST, "/register") => self.register(&body),
            (Method::GET, "/authorize") => self.authorize(&query),
            (Method::POST, "/token") => self.token(&pairs(&body)),
            (Method::POST, "/revoke") => self.revoke(&pairs(&body)),
            // the other places where metadata could be looked for are asked for in good faith
            (Method::GET, path) if path.starts_with("/.well-known/") => not_found(),
            (method, path) => self.refuse("invalid_request", &format!("{method} {path}")),
        }
    }

    /// RFC 8414 §2.
    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.issuer);
        json!({
            "issuer": self.issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "revocation_endpoint": at("/revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    /// RFC 7591 §3.
    fn register(&self, body: &[u8]) -> Response<Answer> {
        let Ok(mut client) = serde_json::from_slice::<Value>(body) else {
            return self.refuse("invalid_client_metadata", "a registration that is not JSON");
        };
        let redirect_uri = client["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
        if !redirect_uri.starts_with("http://127.0.0.1:") || client["token_endpoint_auth_method"] != "none" {
            return self.refuse("invalid_redirect_uri", "a registration that is not one of a native program");
        }
        let id = unguessable();
        client["client_id"] = json!(id);
        let mut book = self.book();
        book.clients.insert(id, redirect_uri);
        book.count.registrations += 1;
        server::respond(StatusCode::CREATED, "application/json", client.to_string())
    }

    /// The person is asked here, and says yes.
    fn authorize(&self, query: &Pairs) -> Response<Answer> {
        let mut book = self.book();
        let redirect_uri = query.get("redirect_uri").cloned().unwrap_or_default();
        let client = query.get("client_id").cloned().unwrap_or_default();
        let known = book.clients.get(&client) == Some(&redirect_uri);
        let has = |name: &str, value: &str| query.get(name).is_some_and(|given| given == value);
        let challenge = query.get("code_challenge").cloned().unwrap_or_default();
        let state = query.get("state").cloned().unwrap_or_default();
        let sound = known
            && has("response_type", "code")
            && has("code_challenge_method", "S256")
            && has("resource", &self.resource)
            && has("scope", "lighthouse")
            && challenge.len() == 43
            && state.len() >= 32;
        if !sound {
            drop(book);
            return self.refuse("invalid_request", "a link that does not ask as it should");
        }
        let code = unguessable();
        let location = {
            let mut answer = url::form_urlencoded::Serializer::new(format!("{redirect_uri}?"));
            answer.append_pair("code", &code).append_pair("state", &state).append_pair("iss", &self.issuer);
            answer.finish().replace("?&", "?")
        };
        book.codes.insert(code, Code { client, redirect_uri, challenge });
        let Ok(location) = HeaderValue::from_str(&location) else { return not_found() };
        let mut response = server::respond(StatusCode::FOUND, "text/plain", String::new());
        response.headers_mut().insert(LOCATION, location);
        response
    }

    /// RFC 6749 §4.1.3 and §6, with rotation: a refresh token is good for one renewal.
    fn token(&self, form: &Pairs) -> Response<Answer> {
        let has = |name: &str, value: &str| form.get(name).is_some_and(|given| given == value);
        if !has("resource", &self.resource) {
            return self.refuse("invalid_target", "a token request for another resource");
        }
        let mut book = self.book();
        let given = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        match given("grant_type") {
            "authorization_code" => {
                let code = book.codes.remove(given("code"));
                let sound = code.is_some_and(|code| {
                    has("client_id", &code.client)
                        && has("redirect_uri", &code.redirect_uri)
                        && code.challenge == s256(given("code_verifier"))
                });
                if !sound {
                    drop(book);
                    return self.refuse("invalid_grant", "a code that is spent, or somebody else's");
                }
                book.count.sign_ins += 1;
            }
            "refresh_token" => {
                if book.refresh.take().as_deref() != Some(given("refresh_token")) {
                    drop(book);
                    return self.refuse("invalid_grant", "a refresh token that was spent already");
                }
                book.count.renewals += 1;
            }
            _ => {
                drop(book);
                return self.refuse("unsupported_grant_type", "a grant that nobody offered");
            }
        }
        let (access, refresh) = (unguessable(), unguessable());
        let answer = json!({
            "access_token": access, "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": refresh, "scope": "lighthouse",
        });
        book.access = Some(access);
        book.refresh = Some(refresh);
        server::json(&answer)
    }

    /// RFC 7009 §2.1: a token that is no longer known is no failure.
    fn revoke(&self, form: &Pairs) -> Response<Answer> {
        let mut book = self.book();
        let token = form.get("token");
        if book.access.as_ref() == token {
            book.access = None;
        }
        if book.refresh.as_ref() == token {
            book.refresh = None;
        }
        book.count.revocations += 1;
        server::respond(StatusCode::OK, "text/plain", String::new())
    }

    fn refuse(&self, error: &str, rule: &str) -> Response<Answer> {
        self.book().broken.get_or_insert_with(|| rule.to_owned());
        server::respond(StatusCode::BAD_REQUEST, "application/json", json!({"error": error}).to_string())
    }
}

type Pairs = HashMap<String, String>;

fn pairs(form: &[u8]) -> Pairs {
    url::form_urlencoded::parse(form).into_owned().collect()
}

/// RFC 7636 §4.2.
fn s256(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

fn not_found() -> Response<Answer> {
    server::respond(StatusCode::NOT_FOUND, "text/plain", String::new())
}

const MAX_BODY: usize = 64 * 1024;
