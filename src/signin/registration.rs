//! Who we are at an authorization server: a given client id, a client id metadata document, a registration that is kept,
//! or a new one (MCP "Client Registration Approaches", RFC 7591).

use serde_json::{Value, json};

use super::metadata::Metadata;
use super::{Options, Problem, now};
use crate::net::{EndpointUrl, Web};
use crate::report::{Report, quoted};
use crate::secret::{ClientSecret, Secret};
use crate::store::{Client, ClientAuthentication, ClientOrigin};

/// Tells our registrations apart from other clients' (RFC 7591 §2): the same for every copy of this program.
const SOFTWARE_ID: &str = "5d5d2c0e-6d0b-4a51-9f0b-6f1c2b0a7e5c";
/// No client id is longer.
const LONGEST_ID: usize = 2048;

/// Whether a client secret that the user gave may be shown to a server: one that the user named, or that was signed in with
/// before. The endpoint alone is not asked, unless it is on this machine, where nobody else is.
///
/// # Errors
/// It may not.
pub fn may_know_secret(
    options: &Options,
    endpoint: &EndpointUrl,
    issuer: &str,
    known: Option<&str>,
) -> Result<(), Problem> {
    let is_named = options.issuer.as_deref() == Some(issuer) || known == Some(issuer);
    if options.client_secret.is_none() || is_named || endpoint.is_loopback() {
        return Ok(());
    }
    Err(Problem::failed(format!(
        "the endpoint names {} as its authorization server, and the client secret is not shown to a server that it alone names; if it is right, say so with --issuer",
        quoted(issuer, 200)
    )))
}

/// The client to sign in as. `kept` is a registration at the same issuer with the same redirect URI.
///
/// # Errors
/// There is no way to become a client there.
pub async fn client(
    web: &Web,
    server: &Metadata,
    options: &Options,
    kept: Option<&Client>,
    redirect_uri: &str,
    report: &Report,
) -> Result<Client, Problem> {
    if let Some(id) = &options.client_id {
        return given(id, options.client_secret.as_ref(), server);
    }
    if let Some(url) = &options.client_metadata_url {
        if server.takes_client_documents {
            return Ok(Client {
                id: url.as_str().to_owned(),
                secret: None,
                secret_expires_at: None,
                authentication: ClientAuthentication::None,
                origin: ClientOrigin::Document,
                redirect_uri: None,
            });
        }
        report.warning(format!(
            "{} takes no client id metadata documents, so --client-metadata-url is of no use there",
            quoted(&server.issuer, 200)
        ));
    }
    if let Some(kept) = kept.filter(|kept| is_usable(kept, redirect_uri)) {
        return Ok(kept.clone());
    }
    register(web, server, redirect_uri).await
}

/// Whether a kept registration still serves.
fn is_usable(client: &Client, redirect_uri: &str) -> bool {
    client.origin == ClientOrigin::Registered
        && client.redirect_uri.as_deref() == Some(redirect_uri)
        && client.secret_expires_at.is_none_or(|end| end > now() / 1000)
}

fn given(id: &str, secret: Option<&ClientSecret>, server: &Metadata) -> Result<Client, Problem> {
    let authentication = match secret {
        None => ClientAuthentication::None,
        Some(_) => with_secret(server).ok_or_else(|| {
            Problem::failed(format!(
                "{} takes no client secret in a header or form; leave out --client-secret-file, or ask its operator",
                quoted(&server.issuer, 200)
            ))
        })?,
    };
    Ok(Client {
        id: id.to_owned(),
        secret: secret.cloned(),
        secret_expires_at: None,
        authentication,
        origin: ClientOrigin::Given,
        redirect_uri: None,
    })
}

/// How a client with a secret shows it. Nothing said means: in the header (RFC 8414 §2).
fn with_secret(server: &Metadata) -> Option<ClientAuthentication> {
    let takes = |name: &str| {
        server.authentication.as_ref().is_some_and(|methods| methods.iter().any(|method| method == name))
    };
    match () {
        () if server.authentication.is_none() || takes("client_secret_basic") => {
            Some(ClientAuthentication::Basic)
        }
        () if takes("client_secret_post") => Some(ClientAuthentication::Post),
        () => None,
    }
}

async fn register(web: &Web, server: &Metadata, redirect_uri: &str) -> Result<Client, Problem> {
    let Some(url) = &server.registration_endpoint else {
        return Err(Problem::failed(format!(
            "{} lets no client register itself; ask its operator for a client id and give it with --client-id (and --client-secret-file), or name a metadata document with --client-metadata-url, or give a token with --token-file",
            quoted(&server.issuer, 200)
        )));
    };
    let wanted = wanted(server);
    let answer = web.post_json(url, request(wanted, redirect_uri).to_string()).await;
    let answer = answer.map_err(|trouble| {
        Problem::failed(format!("{url} {trouble}; check the network, or tell its operator"))
    })?;
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if !matches!(answer.status, 200 | 201) {
        return Err(Problem::failed(format!(
            "{url} refused to register this program: HTTP {}{}; a client id of its operator (--client-id) helps, and a fixed redirect (--callback-port) where it wants one registered",
            answer.status,
            said(&body)
        )));
    }
    read(&body, server, wanted, redirect_uri).map_err(|why| {
        Problem::failed(format!("{url} answered a registration with {why}; tell its operator"))
    })
}

/// The way of authentication that is asked for: none, where that is not ruled out.
fn wanted(server: &Metadata) -> ClientAuthentication {
    let rules_out =
        server.authentication.as_ref().is_some_and(|methods| !methods.iter().any(|method| method == "none"));
    with_secret(server).filter(|_| rules_out).unwrap_or(ClientAuthentication::None)
}

fn request(authentication: ClientAuthentication, redirect_uri: &str) -> Value {
    json!({
        "client_name": "mcp-hasp",
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": name(authentication),
        "software_id": SOFTWARE_ID,
        "software_version": env!("CARGO_PKG_VERSION"),
    })
}

/// What was registered, which need not be what was asked for (RFC 7591 §3.2.1).
fn read(
    body: &Value,
    server: &Metadata,
    wanted: ClientAuthentication,
    redirect_uri: &str,
) -> Result<Client, &'static str> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let id = text("client_id").ok_or("no client_id")?;
    if id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        return Err("a client_id that is none");
    }
    let secret = text("client_secret").map(|secret| ClientSecret(Secret::new(secret.to_owned())));
    let authentication = match (text("token_endpoint_auth_method"), &secret) {
        (Some("none"), _) => ClientAuthentication::None,
        (Some("client_secret_post"), Some(_)) => ClientAuthentication::Post,
        (Some("client_secret_basic"), Some(_)) => ClientAuthentication::Basic,
        (Some("client_secret_post" | "client_secret_basic"), None) => return Err("no client_secret"),
        (Some(_), _) => return Err("a token_endpoint_auth_method that was not asked for"),
        (None, Some(_)) if wanted == ClientAuthentication::None => {
            with_secret(server).unwrap_or(ClientAuthentication::None)
        }
        (None, Some(_)) => wanted,
        (None, None) => ClientAuthentication::None,
    };
    let ends = body.get("client_secret_expires_at").and_then(Value::as_u64).filter(|end| *end != 0);
    let is_used = authentication != ClientAuthentication::None;
    Ok(Client {
        id: id.to_owned(),
        secret: secret.filter(|_| is_used),
        secret_expires_at: ends.filter(|_| is_used),
        authentication,
        origin: ClientOrigin::Registered,
        redirect_uri: Some(redirect_uri.to_owned()),
    })
}

fn name(authentication: ClientAuthentication) -> &'static str {
    match authentication {
        ClientAuthentication::None => "none",
        ClientAuthentication::Post => "client_secret_post",
        ClientAuthentication::Basic => "client_secret_basic",
    }
}

/// An OAuth error (RFC 6749 §5.2, RFC 7591 §3.2.2) for a person.
pub(super) fn said(body: &Value) -> String {
    let text = |name: &str, limit| body.get(name).and_then(Value::as_str).map(|text| quoted(text, limit));
    match (text("error", 60), text("error_description", 200)) {
        (Some(error), Some(description)) => format!(", {error}: {description}"),
        (Some(error), None) => format!(", {error}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signin::metadata::tests::metadata;

    fn server(methods: Option<&[&str]>) -> Metadata {
        metadata(|document| {
            if let Some(methods) = methods {
                document["token_endpoint_auth_methods_supported"] = json!(methods);
            }
        })
        .unwrap()
    }

    #[test]
    fn a_secret_goes_to_no_server_that_the_endpoint_alone_has_named() {
        let secret = Some(ClientSecret(Secret::new("s".into())));
        let may = |url: &str, named: Option<&str>, known: Option<&str>, secret: &Option<ClientSecret>| {
            let issuer = named.map(str::to_owned);
            let options = Options { issuer, client_secret: secret.clone(), ..Options::default() };
            may_know_secret(&options, &EndpointUrl::parse(url).unwrap(), "https://as", known).is_ok()
        };
        let (public, local) = ("https://h.example/mcp", "http://127.0.0.1:1/mcp");
        assert!(!may(public, None, None, &secret) && !may(public, None, Some("https://as/"), &secret));
        assert!(!may(public, Some("https://other"), None, &secret));
        assert!(
            may(public, Some("https://as"), None, &secret) && may(public, None, Some("https://as"), &secret)
        );
        assert!(may(local, None, None, &secret) && may(public, None, None, &None));
    }

    #[test]
    fn the_way_of_authentication_is_one_that_the_server_takes() {
        use ClientAuthentication::{Basic, None as Nothing, Post};
        for (methods, asked, with_a_secret) in [
            (None, Nothing, Some(Basic)),
            (Some(&["none"][..]), Nothing, None),
            (Some(&["none", "client_secret_post"]), Nothing, Some(Post)),
            (Some(&["client_secret_post"]), Post, Some(Post)),
            (Some(&["client_secret_post", "client_secret_basic"]), Basic, Some(Basic)),
            (Some(&["private_key_jwt"]), Nothing, None),
        ] {
            let server = server(methods);
            assert_eq!((wanted(&server), with_secret(&server)), (asked, with_a_secret), "{methods:?}");
        }
    }

    #[test]
    fn what_was_registered_counts_not_what_was_asked_for() {
        let read = |body: Value, methods: Option<&[&str]>| {
            let server = server(methods);
            let client = read(&body, &server, wanted(&server), "http://127.0.0.1:1/callback")?;
            Ok::<_, &str>((
                client.id,
                client.authentication,
                client.secret.is_some(),
                client.secret_expires_at,
            ))
        };
        use ClientAuthentication::{Basic, None as Nothing, Post};
        let id = || "c".to_owned();
        assert_eq!(read(json!({"client_id": "c"}), None), Ok((id(), Nothing, false, None)));
        let basic = json!({"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_basic", "client_secret_expires_at": 7});
        assert_eq!(read(basic, None), Ok((id(), Basic, true, Some(7))));
        let unsaid = json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": 0});
        assert_eq!(read(unsaid.clone(), Some(&["client_secret_post"])), Ok((id(), Post, true, None)));
        assert_eq!(read(unsaid, Some(&["none"])), Ok((id(), Nothing, false, None)));
        for wrong in [
            json!({}),
            json!([]),
            json!({"client_id": ""}),
            json!({"client_id": 5}),
            json!({"client_id": "a\nb"}),
            json!({"client_id": "c", "token_endpoint_auth_method": "client_secret_post"}),
            json!({"client_id": "c", "token_endpoint_auth_method": "private_key_jwt"}),
        ] {
            assert!(read(wrong.clone(), None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_registration_serves_for_its_redirect_and_while_its_secret_lasts() {
        let uri = "http://127.0.0.1:1/callback";
        let mut client =
            read(&json!({"client_id": "c"}), &server(None), ClientAuthentication::None, uri).unwrap();
        assert!(is_usable(&client, uri) && !is_usable(&client, "http://127.0.0.1:2/callback"));
        client.secret_expires_at = Some(now() / 1000 + 100);
        assert!(is_usable(&client, uri));
        client.secret_expires_at = Some(now() / 1000);
        assert!(!is_usable(&client, uri));
    }
}
