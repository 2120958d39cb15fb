//! What a client must and must not do at an authorization server.

use std::collections::BTreeSet;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use sha2::{Digest as _, Sha256};
use url::{Host, Url};

use super::{
    ledger::{AuthMethod, KnownClient, Ledger},
    seen::{AuthorityRequest, decoded},
};

/// The rules broken, and what a server says to such a request.
#[derive(Default)]
pub struct Judgement {
    /// In words; these fail the test.
    pub broken: Vec<String>,
    /// The error code for the client, where the request cannot succeed.
    pub error: Option<&'static str>,
    /// The client, where it is the one it says.
    pub client: Option<String>,
}

impl Judgement {
    fn rule(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.broken.push(otherwise.to_owned());
            self.error.get_or_insert("invalid_request");
        }
    }

    /// A request that may be sent and yet fails.
    fn fails(&mut self, error: &'static str) {
        self.error.get_or_insert(error);
    }

    fn must(&mut self, holds: bool, error: &'static str, otherwise: &str) {
        if !holds {
            self.broken.push(otherwise.to_owned());
            self.error.get_or_insert(error);
        }
    }

    fn once(&mut self, pairs: &[(String, String)], allowed: &[&str]) {
        let mut names = BTreeSet::new();
        for (name, value) in pairs {
            self.rule(names.insert(name), &format!("the parameter {name} twice"));
            self.rule(allowed.contains(&name.as_str()), &format!("a parameter {name}"));
            self.rule(!value.is_empty(), &format!("an empty {name}"));
        }
    }
}

/// What holds for every request.
pub fn common(request: &AuthorityRequest) -> Judgement {
    let mut judgement = Judgement::default();
    let has = |name: &str| request.header(name).is_some();
    judgement.rule(!has("cookie"), "a cookie");
    judgement.rule(!has("x-key"), "a --header that is for the endpoint alone");
    judgement.rule(!has("mcp-session-id"), "a session id of the endpoint");
    let bearer = request
        .header("authorization")
        .is_some_and(|value| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")));
    judgement.rule(!bearer, "a bearer token");
    judgement
}

/// A request for metadata.
pub fn metadata(request: &AuthorityRequest) -> Judgement {
    let mut judgement = common(request);
    judgement.rule(request.method == "GET", "metadata asked for with another verb than GET");
    judgement.rule(request.header("authorization").is_none(), "metadata asked for with an Authorization");
    judgement.rule(request.body.is_empty(), "metadata asked for with a body");
    judgement
}

/// A registration.
pub fn registration(request: &AuthorityRequest) -> Judgement {
    let mut judgement = common(request);
    judgement.rule(request.method == "POST", "a registration that is no POST");
    judgement.rule(request.raw_query.is_empty(), "a registration with a query");
    judgement.rule(request.media_type() == "application/json", "a registration that is not JSON");
    judgement.rule(request.header("authorization").is_none(), "a registration with an Authorization");
    let asked = &request.json;
    let text = |name: &str| asked[name].as_str().unwrap_or_default();
    judgement.rule(text("application_type") == "native", "application_type is not native");
    judgement.rule(!text("client_name").is_empty(), "no client_name");
    judgement.rule(!text("software_id").is_empty(), "no software_id");
    judgement.rule(
        AuthMethod::named(text("token_endpoint_auth_method")).is_some(),
        "no token_endpoint_auth_method, or none that is known",
    );
    judgement.rule(
        asked["grant_types"] == serde_json::json!(["authorization_code", "refresh_token"]),
        "grant_types are not authorization_code and refresh_token",
    );
    judgement.rule(asked["response_types"] == serde_json::json!(["code"]), "response_types is not code");
    let uris = asked["redirect_uris"].as_array().cloned().unwrap_or_default();
    judgement.rule(!uris.is_empty(), "no redirect_uris");
    for uri in uris {
        let fine = uri.as_str().is_some_and(|uri| loopback_callback(uri).is_some());
        judgement.rule(fine, "a redirect URI that is not http://127.0.0.1:port/callback");
    }
    judgement.rule(asked.get("scope").is_none_or(|scope| scope != ""), "an empty scope");
    judgement
}

/// What an authorization request is judged by.
pub struct Asked<'a> {
    /// Parameters that the authorization endpoint has by itself.
    pub own: Vec<(String, String)>,
    /// Ports have to be the registered ones.
    pub exact_port: bool,
    /// URLs of metadata documents are client ids.
    pub documents: bool,
    /// What is known.
    pub ledger: &'a Ledger,
}

/// An authorization request, as the client built it and a browser brings it.
pub fn authorization(request: &AuthorityRequest, asked: &Asked<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    judgement.rule(request.method == "GET", "an authorization request that is no GET");
    let mut pairs = request.query_pairs();
    for own in &asked.own {
        let at = pairs.iter().position(|pair| pair == own);
        judgement.rule(at.is_some(), "a parameter of the authorization endpoint itself is lost");
        at.map(|at| pairs.remove(at));
    }
    let known = [
        "response_type",
        "client_id",
        "redirect_uri",
        "code_challenge",
        "code_challenge_method",
        "state",
        "resource",
        "scope",
    ];
    judgement.once(&pairs, &known);
    let value = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
    judgement.rule(value("response_type") == "code", "response_type is not code");
    judgement.rule(value("code_challenge_method") == "S256", "code_challenge_method is not S256");
    let challenge = value("code_challenge");
    let whole = URL_SAFE_NO_PAD.decode(challenge).is_ok_and(|bytes| bytes.len() == 32);
    judgement.rule(whole, "code_challenge is not a hash of 43 characters");
    let state = value("state");
    judgement.rule(state.len() >= 22, "a state of less than 22 characters");
    let ledger = asked.ledger;
    let other_query = ledger.states.get(state).is_some_and(|query| *query != request.raw_query);
    judgement.rule(!other_query, "a state that was used before");
    let other_state = ledger.challenges.get(challenge).is_some_and(|before| before != state);
    judgement.rule(!other_state, "a code_challenge that was used before");
    judgement.must(ledger.resources.contains(value("resource")), "invalid_target", "another resource");

    let (id, redirect) = (value("client_id"), value("redirect_uri"));
    let client = match ledger.clients.get(id) {
        Some(client) => client.clone(),
        None if asked.documents && is_document(id) => document_client(id),
        None => {
            judgement.must(ledger.forgotten.contains(id), "unknown_client", "an unknown client_id");
            judgement.fails("unknown_client");
            return judgement;
        }
    };
    judgement.client = Some(client.id.clone());
    match fits(redirect, &client, asked.exact_port) {
        Fits::Yes => {}
        // nobody can know which servers pin the port
        Fits::ButPort => judgement.error = Some("redirect_uri_mismatch"),
        Fits::No => {
            judgement.broken.push("a redirect_uri that is not registered".to_owned());
            judgement.error = Some("redirect_uri_mismatch");
        }
    }
    judgement
}

/// A token request.
pub fn token(request: &AuthorityRequest, ledger: &Ledger, documents: bool) -> Judgement {
    let mut judgement = posted_form(request, ledger, documents);
    let value = |name: &str| request.form.get(name).map(String::as_str).unwrap_or_default();
    let resource = value("resource");
    judgement.must(ledger.resources.contains(resource), "invalid_target", "another resource");
    let client = judgement.client.clone().unwrap_or_default();
    let authentication = ["grant_type", "client_id", "client_secret", "resource"];
    match value("grant_type") {
        "authorization_code" => {
            let names = ["code", "redirect_uri", "code_verifier"];
            judgement.once(&request.form_pairs(), &[&authentication[..], &names[..]].concat());
            let Some(code) = ledger.codes.get(value("code")) else {
                judgement.must(false, "invalid_grant", "a code that was never given out");
                return judgement;
            };
            judgement.must(code.used.is_none(), "invalid_grant", "a code for the second time");
            judgement.must(
                code.redirect_uri == value("redirect_uri"),
                "invalid_grant",
                "another redirect_uri",
            );
            judgement.must(code.resource == resource, "invalid_target", "another resource than authorized");
            if !client.is_empty() {
                judgement.must(code.client == client, "invalid_grant", "the code of another client");
            }
            let verifier = value("code_verifier");
            let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            judgement.rule(
                (43..=128).contains(&verifier.len()) && verifier.bytes().all(unreserved),
                "a code_verifier that is none",
            );
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
            judgement.must(hash == code.challenge, "invalid_grant", "the code_verifier of something else");
        }
        "refresh_token" => {
            let names = ["refresh_token"];
            judgement.once(&request.form_pairs(), &[&authentication[..], &names[..]].concat());
            let Some(refresh) = ledger.refresh.get(value("refresh_token")) else {
                judgement.must(false, "invalid_grant", "a refresh token that was never given out");
                return judgement;
            };
            let grant = &ledger.grants[refresh.grant];
            judgement.must(grant.resource == resource, "invalid_target", "another resource than granted");
            if !client.is_empty() {
                judgement.must(grant.client == client, "invalid_grant", "the token of another client");
            }
            if grant.revoked {
                judgement.fails("invalid_grant");
            }
        }
        _ => judgement.must(false, "unsupported_grant_type", "another grant_type"),
    }
    judgement
}

/// A revocation.
pub fn revocation(request: &AuthorityRequest, ledger: &Ledger, documents: bool) -> Judgement {
    let mut judgement = posted_form(request, ledger, documents);
    judgement.once(&request.form_pairs(), &["token", "token_type_hint", "client_id", "client_secret"]);
    let value = |name: &str| request.form.get(name).map(String::as_str).unwrap_or_default();
    judgement.rule(!value("token").is_empty(), "a revocation of nothing");
    match value("token_type_hint") {
        "access_token" => judgement.rule(
            !matches!(ledger.standing(value("token")), super::Standing::Unknown),
            "a revoked access token that was never given out",
        ),
        "refresh_token" => judgement.rule(
            ledger.refresh.contains_key(value("token")),
            "a revoked refresh token that was never given out",
        ),
        _ => judgement.rule(false, "no token_type_hint"),
    }
    judgement
}

/// A form with the authentication of a client.
fn posted_form(request: &AuthorityRequest, ledger: &Ledger, documents: bool) -> Judgement {
    let mut judgement = common(request);
    judgement.rule(request.method == "POST", "a form that is not posted");
    judgement.rule(request.raw_query.is_empty(), "a query beside the form");
    judgement
        .rule(request.media_type() == "application/x-www-form-urlencoded", "a content type that is no form");
    let sent = request.headers.iter().filter(|(name, _)| name == "authorization");
    let headers: Vec<&str> = sent.map(|(_, value)| value.as_str()).collect();
    judgement.rule(headers.len() <= 1, "several Authorization headers");
    let in_body = request.form.get("client_id");
    let basic = match headers.first() {
        None => None,
        Some(value) => match basic_pair(value) {
            Some(pair) => Some(pair),
            None => {
                judgement.must(false, "invalid_client", "an Authorization that is no form-encoded Basic");
                return judgement;
            }
        },
    };
    let Some(id) = basic.as_ref().map(|(id, _)| id).or(in_body) else {
        judgement.must(false, "invalid_client", "no client_id");
        return judgement;
    };
    judgement.rule(in_body.is_none_or(|other| other == id), "two different client ids");
    let client = match ledger.clients.get(id) {
        Some(client) => client.clone(),
        None if documents && is_document(id) => document_client(id),
        None => {
            judgement.must(ledger.forgotten.contains(id), "invalid_client", "an unknown client_id");
            judgement.error = Some("invalid_client");
            return judgement;
        }
    };
    let secret = request.form.get("client_secret");
    let right = match client.method {
        AuthMethod::None => basic.is_none() && secret.is_none(),
        AuthMethod::Post => basic.is_none() && secret == client.secret.as_ref(),
        AuthMethod::Basic => {
            secret.is_none() && basic.is_some_and(|(_, secret)| Some(secret) == client.secret)
        }
    };
    judgement.must(right, "invalid_client", &format!("not authenticated by {}", client.method.name()));
    if client.secret_expires_at.is_some_and(|ends| ends != 0 && ends <= super::now()) {
        judgement.must(false, "invalid_client", "a client secret that has expired");
    }
    if right {
        judgement.client = Some(client.id);
    }
    judgement
}

/// Id and secret of a Basic header (RFC 6749 §2.3.1); `None` where they are not form-encoded.
fn basic_pair(value: &str) -> Option<(String, String)> {
    let (scheme, rest) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let plain = |text: &str| {
        let form = |byte: u8| byte.is_ascii_alphanumeric() || b"*-._+%".contains(&byte);
        let one = format!("x={text}");
        text.bytes().all(form).then(|| decoded(one.as_bytes()).pop().map(|(_, value)| value)).flatten()
    };
    Some((plain(id)?, plain(secret)?))
}

/// Whether a client id is the URL of a metadata document.
fn is_document(id: &str) -> bool {
    Url::parse(id).is_ok_and(|url| url.scheme() == "https" && url.path() != "/" && url.fragment().is_none())
}

fn document_client(id: &str) -> KnownClient {
    KnownClient {
        id: id.to_owned(),
        secret: None,
        secret_expires_at: None,
        method: AuthMethod::None,
        redirect_uris: Vec::new(),
        registered: false,
    }
}

enum Fits {
    Yes,
    ButPort,
    No,
}

fn fits(uri: &str, client: &KnownClient, exact_port: bool) -> Fits {
    if client.redirect_uris.iter().any(|known| known == uri) {
        return Fits::Yes;
    }
    let Some(path) = loopback(uri) else { return Fits::No };
    let same = match client.redirect_uris.is_empty() {
        true => path == "/callback",
        false => client.redirect_uris.iter().any(|known| loopback(known).as_ref() == Some(&path)),
    };
    match (same, exact_port && !client.redirect_uris.is_empty()) {
        (false, _) => Fits::No,
        (true, true) => Fits::ButPort,
        (true, false) => Fits::Yes,
    }
}

/// The path of a URI that is `http://127.0.0.1:port` and a path, spelled just so.
fn loopback(uri: &str) -> Option<String> {
    let url = Url::parse(uri).ok()?;
    let port = url.port()?;
    let host = matches!(url.host(), Some(Host::Ipv4(host)) if host.is_loopback());
    let path = url.path().to_owned();
    (host && uri == format!("http://127.0.0.1:{port}{path}")).then_some(path)
}

fn loopback_callback(uri: &str) -> Option<()> {
    (loopback(uri)? == "/callback").then_some(())
}
