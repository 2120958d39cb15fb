//! The token endpoint (RFC 6749 §3.2) and the revocation endpoint (RFC 7009): the only places a code, a verifier, a refresh
//! token or a client secret is sent to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};
use zeroize::Zeroizing;

use super::registration::said;
use super::{Problem, now};
use crate::endpoint::challenge::scopes;
use crate::net::{Fetched, NamedUrl, Reach, Web};
use crate::report::quoted;
use crate::secret::{AccessToken, AuthorizationCode, RefreshToken, Secret};
use crate::store::{Client, ClientAuthentication, Pending, Record, Tokens};

/// No token is longer, in bytes.
const LONGEST_TOKEN: usize = 64 * 1024;
/// No token is said to live longer than this, in seconds.
const LONGEST_LIFE: u64 = 100 * 365 * 24 * 3600;

/// What was granted.
#[derive(Debug)]
pub struct Granted {
    /// The tokens.
    pub tokens: Tokens,
    /// The scopes, where the server said.
    pub scopes: Option<Vec<String>>,
}

/// Why nothing was granted.
#[derive(Debug)]
pub enum NotGranted {
    /// `invalid_grant`: the code or refresh token is dead.
    Dead(String),
    /// `invalid_client` or `unauthorized_client`: the server does not know us, or not like this.
    UnknownClient(String),
    /// The request did not arrive.
    Unsent(Problem),
    /// It may pass, and says nothing about the grant.
    Passing(Problem),
    /// Anything else the server refuses.
    Refused(String),
}

/// Exchanges a code (RFC 6749 §4.1.3).
///
/// # Errors
/// Nothing was granted.
pub async fn exchange(web: &Web, pending: &Pending, code: AuthorizationCode) -> Result<Granted, NotGranted> {
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.0.expose_secret()),
        ("redirect_uri", &pending.redirect_uri),
        ("code_verifier", pending.verifier.0.expose_secret()),
        ("resource", &pending.resource),
    ];
    grant(web, &pending.token_endpoint, &pending.client, &form).await
}

/// Renews an access token (RFC 6749 §6). No `scope`: the same as before.
///
/// # Errors
/// Nothing was granted.
pub async fn refresh(web: &Web, record: &Record, refresh: &RefreshToken) -> Result<Granted, NotGranted> {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.0.expose_secret()),
        ("resource", &record.resource),
    ];
    grant(web, &record.token_endpoint, &record.client, &form).await
}

/// Revokes one token. `Ok`: the server has forgotten it, or never knew it (RFC 7009 §2.2).
///
/// # Errors
/// It may still be good; in words for a person.
pub async fn revoke(web: &Web, record: &Record, token: &Secret, hint: &str) -> Result<(), String> {
    let Some(endpoint) = &record.revocation_endpoint else {
        return Err(format!("{} has no way to revoke tokens", quoted(&record.issuer, 200)));
    };
    let url = parse(endpoint, web.reach())?;
    let form = [("token", token.expose_secret()), ("token_type_hint", hint)];
    let (authorization, form) = authenticated(&record.client, &form);
    let answer =
        web.post_form(&url, authorization, form).await.map_err(|trouble| format!("{url} {trouble}"))?;
    match answer.status {
        200..=299 => Ok(()),
        status => {
            let body = serde_json::from_slice(&answer.body).unwrap_or_default();
            Err(format!("{url} answered HTTP {status}{}", said(&body)))
        }
    }
}

fn parse(url: &str, reach: Reach) -> Result<NamedUrl, String> {
    NamedUrl::parse(url, reach).map_err(|why| format!("{} {why}", quoted(url, 200)))
}

async fn grant(
    web: &Web,
    endpoint: &str,
    client: &Client,
    form: &[(&str, &str)],
) -> Result<Granted, NotGranted> {
    let url = parse(endpoint, web.reach()).map_err(NotGranted::Refused)?;
    let (authorization, form) = authenticated(client, form);
    let asked_at = now();
    let answer = web.post_form(&url, authorization, form).await.map_err(|trouble| {
        let problem = Problem::passing(format!("the authorization server's {url} {trouble}"), None);
        if trouble.nothing_sent() { NotGranted::Unsent(problem) } else { NotGranted::Passing(problem) }
    })?;
    read(&url, &answer, asked_at)
}

fn read(url: &NamedUrl, answer: &Fetched, asked_at: u64) -> Result<Granted, NotGranted> {
    if answer.status == 200 {
        return granted(&answer.body, answer.is_json, asked_at).map_err(|why| {
            let why = format!("the authorization server's {url} answered with {why}; tell its operator");
            NotGranted::Passing(Problem::passing(why, None))
        });
    }
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let why = format!("the authorization server's {url} answered HTTP {}{}", answer.status, said(&body));
    let error = body.get("error").and_then(serde_json::Value::as_str).unwrap_or_default();
    Err(match (answer.status, error) {
        (408 | 425 | 429 | 500.., _) | (_, "temporarily_unavailable" | "slow_down") => {
            NotGranted::Passing(Problem::passing(why, answer.retry_after))
        }
        (400 | 401 | 403, "invalid_grant") => NotGranted::Dead(why),
        (400 | 401 | 403, "invalid_client" | "unauthorized_client") => NotGranted::UnknownClient(why),
        // Without a word of OAuth's it is something in between that answers, and the grant is as it was.
        (_, "") => NotGranted::Passing(Problem::passing(why, answer.retry_after)),
        _ => NotGranted::Refused(why),
    })
}

/// A token answer (RFC 6749 §5.1).
#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

fn granted(body: &[u8], is_json: bool, asked_at: u64) -> Result<Granted, &'static str> {
    if !is_json {
        return Err("something that is not JSON");
    }
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| "something that is no token answer (RFC 6749 §5.1)")?;
    if !answer.token_type.eq_ignore_ascii_case("bearer") {
        return Err("a token that is no bearer token");
    }
    // RFC 6750 §2.1: what a header can carry, and nothing that could end it.
    let is_token = |text: &str| {
        !text.is_empty() && text.len() <= LONGEST_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !is_token(&answer.access_token) {
        return Err("an access token that no header can carry");
    }
    let refresh = answer.refresh_token.filter(|token| !token.is_empty());
    if refresh.as_ref().is_some_and(|token| token.len() > LONGEST_TOKEN) {
        return Err("a refresh token that is too long");
    }
    let life = answer.expires_in.as_ref().and_then(seconds);
    Ok(Granted {
        tokens: Tokens {
            access: AccessToken(Secret::new(answer.access_token)),
            refresh: refresh.map(|token| RefreshToken(Secret::new(token))),
            obtained_at: asked_at,
            expires_at: life.map(|seconds| asked_at.saturating_add(seconds.min(LONGEST_LIFE) * 1000)),
        },
        scopes: answer.scope.map(|text| scopes(&text)),
    })
}

/// Some servers write the number as text, or with a fraction.
fn seconds(value: &serde_json::Value) -> Option<u64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded on both sides")]
    (number.is_finite() && number >= 0.0).then(|| number.min(LONGEST_LIFE as f64) as u64)
}

/// The header and the form of a request, with the client's authentication in one of them, never in both (RFC 6749 §2.3).
fn authenticated(client: &Client, fields: &[(&str, &str)]) -> (Option<HeaderValue>, Zeroizing<String>) {
    let secret = client.secret.as_ref().map(|secret| secret.0.expose_secret()).unwrap_or_default();
    // Never grown: that would leave a copy behind, which nobody wipes.
    let length = fields.iter().map(|(name, value)| name.len() + 3 * value.len() + 2).sum::<usize>();
    let room = length + 3 * (client.id.len() + secret.len()) + 64;
    let mut form = Serializer::new(String::with_capacity(room));
    form.extend_pairs(fields);
    let mut header = None;
    match client.authentication {
        ClientAuthentication::Basic => header = basic(&client.id, secret),
        ClientAuthentication::None => drop(form.append_pair("client_id", &client.id)),
        ClientAuthentication::Post => {
            form.append_pair("client_id", &client.id).append_pair("client_secret", secret);
        }
    }
    (header, Zeroizing::new(form.finish()))
}

/// Id and secret are form-encoded before they are joined (RFC 6749 §2.3.1).
fn basic(id: &str, secret: &str) -> Option<HeaderValue> {
    let mut pair = Zeroizing::new(String::with_capacity(3 * (id.len() + secret.len()) + 1));
    pair.extend(byte_serialize(id.as_bytes()));
    pair.push(':');
    pair.extend(byte_serialize(secret.as_bytes()));
    let encoded = Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())));
    let mut value = HeaderValue::from_str(&encoded).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::ClientSecret;
    use crate::signin::attempt::tests::client;

    fn answer(status: u16, body: &str) -> Fetched {
        Fetched {
            status,
            is_json: true,
            retry_after: Some(7),
            body: Zeroizing::new(body.as_bytes().to_vec()),
        }
    }

    fn verdict(status: u16, body: &str) -> &'static str {
        let url = NamedUrl::parse("https://as/token", Reach::Public).unwrap();
        match read(&url, &answer(status, body), 0) {
            Ok(_) => "granted",
            Err(NotGranted::Dead(_)) => "dead",
            Err(NotGranted::UnknownClient(_)) => "unknown client",
            Err(NotGranted::Passing(_) | NotGranted::Unsent(_)) => "passing",
            Err(NotGranted::Refused(_)) => "refused",
        }
    }

    #[test]
    fn only_the_servers_own_word_ends_a_sign_in() {
        for (status, body, expected) in [
            (200, r#"{"access_token":"a","token_type":"bEaReR"}"#, "granted"),
            (200, r#"{"access_token":"a","token_type":"mac"}"#, "passing"),
            (200, r#"{"access_token":"a b","token_type":"Bearer"}"#, "passing"),
            (200, r#"{"access_token":"","token_type":"Bearer"}"#, "passing"),
            (200, "<html>", "passing"),
            (200, r#"{"access_token":"a""#, "passing"),
            (400, r#"{"error":"invalid_grant"}"#, "dead"),
            (401, r#"{"error":"invalid_grant"}"#, "dead"),
            (401, r#"{"error":"invalid_client"}"#, "unknown client"),
            (400, r#"{"error":"unauthorized_client"}"#, "unknown client"),
            (400, r#"{"error":"invalid_target"}"#, "refused"),
            (400, r#"{"error":"temporarily_unavailable"}"#, "passing"),
            (500, r#"{"error":"invalid_grant"}"#, "passing"),
            (503, r#"{"error":"invalid_client"}"#, "passing"),
            (429, r#"{"error":"invalid_grant"}"#, "passing"),
            (404, "<html>", "passing"),
            (403, "{}", "passing"),
        ] {
            assert_eq!(verdict(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn a_life_is_read_however_it_is_written() {
        let ends = |life: &str| {
            let body = format!(r#"{{"access_token":"a","token_type":"Bearer","expires_in":{life}}}"#);
            granted(body.as_bytes(), true, 1000).unwrap().tokens.expires_at
        };
        assert_eq!(ends("5"), Some(6000));
        assert_eq!(ends("\"5\""), Some(6000));
        assert_eq!(ends("5.9"), Some(6000));
        assert_eq!(ends("0"), Some(1000));
        for unknown in ["null", "-1", "\"soon\"", "[]"] {
            assert_eq!(ends(unknown), None, "{unknown}");
        }
        assert!(ends("1e300").is_some());
    }

    #[test]
    fn a_client_shows_its_secret_in_one_place_alone() {
        let mut client = client();
        client.id = "a b".into();
        client.secret = Some(ClientSecret(Secret::new("s:%+".into())));
        let mut sent = |authentication| {
            client.authentication = authentication;
            let (header, form) = authenticated(&client, &[("token", "t+1")]);
            (header.map(|value| value.to_str().unwrap().to_owned()), form.to_string())
        };
        let basic = format!("Basic {}", STANDARD.encode("a+b:s%3A%25%2B"));
        assert_eq!(sent(ClientAuthentication::Basic), (Some(basic), "token=t%2B1".into()));
        let post = "token=t%2B1&client_id=a+b&client_secret=s%3A%25%2B".to_owned();
        assert_eq!(sent(ClientAuthentication::Post), (None, post));
        assert_eq!(sent(ClientAuthentication::None), (None, "token=t%2B1&client_id=a+b".into()));
    }
}
