//! What an authorization server says of itself (RFC 8414, OpenID Connect Discovery), once it is checked.

use url::Url;

use super::Problem;
use super::document::{Document, fetch};
use crate::net::{NamedUrl, Web};
use crate::report::quoted;

/// An authorization server. Can only be made of a document that is about the issuer it was looked for, and names safe URLs
/// alone.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// How it spells itself; compared as text, never as a URL.
    pub issuer: String,
    /// Where the browser goes.
    pub authorization_endpoint: NamedUrl,
    /// Where codes and refresh tokens are exchanged.
    pub token_endpoint: NamedUrl,
    /// Where clients are registered (RFC 7591).
    pub registration_endpoint: Option<NamedUrl>,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<NamedUrl>,
    /// `scopes_supported`
    pub scopes: Vec<String>,
    /// `token_endpoint_auth_methods_supported`
    pub authentication: Option<Vec<String>>,
    /// It names itself in the authorization response (RFC 9207 §3).
    pub announces_iss: bool,
    /// It takes the URL of a document for a client id.
    pub takes_client_documents: bool,
}

/// Finds and checks the metadata of an issuer.
///
/// # Errors
/// There is none that may be used.
pub async fn find(web: &Web, issuer: &str) -> Result<Metadata, Problem> {
    let wrong = |why: &dyn std::fmt::Display| {
        Problem::failed(format!(
            "the endpoint names {} as its authorization server, which {why}; tell its operator",
            quoted(issuer, 200)
        ))
    };
    let url = NamedUrl::parse(issuer, web.reach()).map_err(|why| wrong(&why))?;
    if url.as_url().query().is_some() {
        return Err(wrong(&"has a query (RFC 8414 §2)"));
    }
    let mut tried = Vec::new();
    for place in places(url.as_url()) {
        let place = NamedUrl::parse(&place, web.reach()).map_err(|why| wrong(&why))?;
        match fetch(web, &place).await? {
            Ok(document) => return check(&document, issuer, &place, web),
            Err(why) => tried.push(why),
        }
    }
    Err(Problem::failed(format!(
        "the authorization server {} publishes no metadata (RFC 8414): {}; tell its operator",
        quoted(issuer, 200),
        tried.join(", ")
    )))
}

/// The places in their order. The issuer's last slash is dropped (RFC 8414 §3.1).
fn places(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin().ascii_serialization();
    let path = issuer.path().trim_end_matches('/');
    let inserted = |name: &str| format!("{origin}/.well-known/{name}{path}");
    let mut places = vec![inserted("oauth-authorization-server"), inserted("openid-configuration")];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    places
}

fn check(document: &Document, issuer: &str, place: &NamedUrl, web: &Web) -> Result<Metadata, Problem> {
    let wrong = |why: String| Problem::failed(format!("{place} {why}; tell the operator of that server"));
    match document.text("issuer") {
        Some(named) if named == issuer => {}
        named => {
            return Err(wrong(format!(
                "is about the issuer {}, and {} was asked for; they must be the same text (RFC 8414 §3.3)",
                quoted(named.unwrap_or_default(), 200),
                quoted(issuer, 200)
            )));
        }
    }
    let methods = document.texts("code_challenge_methods_supported");
    if !methods.is_some_and(|methods| methods.iter().any(|method| method == "S256")) {
        return Err(wrong("does not list S256 in code_challenge_methods_supported (PKCE, RFC 7636), without which a sign-in could be stolen".into()));
    }
    let optional = |name: &str| {
        let Some(text) = document.text(name) else { return Ok(None) };
        let url = NamedUrl::parse(text, web.reach());
        url.map(Some).map_err(|why| wrong(format!("names the {name} {}, which {why}", quoted(text, 200))))
    };
    let required = |name: &str| optional(name)?.ok_or_else(|| wrong(format!("names no {name}")));
    Ok(Metadata {
        issuer: issuer.to_owned(),
        authorization_endpoint: required("authorization_endpoint")?,
        token_endpoint: required("token_endpoint")?,
        registration_endpoint: optional("registration_endpoint")?,
        revocation_endpoint: optional("revocation_endpoint")?,
        scopes: document.texts("scopes_supported").unwrap_or_default(),
        authentication: document.texts("token_endpoint_auth_methods_supported"),
        announces_iss: document.says("authorization_response_iss_parameter_supported"),
        takes_client_documents: document.says("client_id_metadata_document_supported"),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::net::Reach;
    use serde_json::{Value, json};

    #[test]
    fn the_well_known_name_is_inserted_before_it_is_appended() {
        let places = |issuer: &str| places(&Url::parse(issuer).unwrap()).join(" ");
        assert_eq!(
            places("https://as"),
            "https://as/.well-known/oauth-authorization-server https://as/.well-known/openid-configuration"
        );
        assert_eq!(places("https://as/"), places("https://as"));
        assert_eq!(
            places("https://as/t1/"),
            "https://as/.well-known/oauth-authorization-server/t1 https://as/.well-known/openid-configuration/t1 \
             https://as/t1/.well-known/openid-configuration"
        );
    }

    /// A good document, changed.
    pub(in crate::signin) fn metadata(change: impl FnOnce(&mut Value)) -> Result<Metadata, String> {
        let mut document = json!({
            "issuer": "https://as", "authorization_endpoint": "https://as/authorize", "token_endpoint": "https://as/token",
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        change(&mut document);
        let place = NamedUrl::parse("https://as/doc", Reach::Public).unwrap();
        let web = Web::new(Reach::Public, Vec::new());
        check(&Document::of(document), "https://as", &place, &web).map_err(|problem| problem.why)
    }

    #[test]
    fn an_issuer_is_compared_as_text() {
        for other in ["https://as/", "HTTPS://as", "https://as:443", ""] {
            let why = metadata(|document| document["issuer"] = other.into()).unwrap_err();
            assert!(why.contains(&format!("{other:?}")) && why.contains("\"https://as\""), "{why}");
        }
        assert!(metadata(|document| drop(document.as_object_mut().unwrap().remove("issuer"))).is_err());
    }

    #[test]
    fn without_s256_there_is_no_sign_in() {
        for methods in [json!(null), json!([]), json!(["plain"]), json!("S256"), json!([["S256"]])] {
            let why =
                metadata(|document| document["code_challenge_methods_supported"] = methods).unwrap_err();
            assert!(
                why.starts_with("https://as/doc does not list S256 in code_challenge_methods_supported"),
                "{why}"
            );
        }
    }

    #[test]
    fn every_url_in_it_is_a_safe_one() {
        for name in
            ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]
        {
            for url in [
                "http://as/x",
                "file:///etc/passwd",
                "javascript:alert(1)",
                "ms-settings:",
                "https://127.0.0.1/x",
                "https://10.0.0.1/x",
                "https://u:p@as/x",
                "https://as/x#f",
                "//as/x",
                "https://as/\"&calc\"&",
            ] {
                let why = metadata(|document| document[name] = url.into());
                match why {
                    Err(why) => assert!(why.contains(name), "{why}"),
                    Ok(_) => assert!(url.ends_with('&'), "{name} {url}"),
                }
            }
        }
        for name in ["authorization_endpoint", "token_endpoint"] {
            let why = metadata(|document| document[name] = json!(5)).unwrap_err();
            assert!(why.contains(&format!("names no {name}")), "{why}");
        }
        assert!(metadata(|_| {}).unwrap().registration_endpoint.is_none());
    }
}
