//! One authorization request (RFC 6749 §4.1.1, RFC 7636, RFC 8707) and what the redirect that answers it is worth
//! (RFC 9207). The order of the checks is the promise: state, issuer, error, code.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

use super::callback::Answered;
use super::metadata::Metadata;
use super::{Options, Problem};
use crate::report::quoted;
use crate::secret::{AuthorizationCode, CodeVerifier, Secret};
use crate::store::{Client, Pending, Record};

/// Random bytes of a state and of a verifier (RFC 7636 §4.1: 32 of them make 43 characters).
const RANDOM: usize = 32;
/// Asks for refresh tokens (OpenID Connect Core §11).
const OFFLINE: &str = "offline_access";

/// Makes a request that nobody can guess.
///
/// # Errors
/// The system has no random numbers.
pub fn begin(
    server: &Metadata,
    client: Client,
    resource: String,
    asked: Vec<String>,
    redirect_uri: &str,
    until: u64,
) -> Result<Pending, Problem> {
    let (state, verifier) = (random()?, random()?);
    let mut link = server.authorization_endpoint.as_url().clone();
    {
        let mut query = link.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_challenge", &challenge(&verifier))
            .append_pair("code_challenge_method", "S256")
            .append_pair("state", state.expose_secret())
            .append_pair("resource", &resource);
        if !asked.is_empty() {
            query.append_pair("scope", &asked.join(" "));
        }
    }
    Ok(Pending {
        state,
        verifier: CodeVerifier(verifier),
        redirect_uri: redirect_uri.to_owned(),
        link: Secret::new(link.into()),
        issuer: server.issuer.clone(),
        issuer_announced: server.announces_iss,
        resource,
        client,
        token_endpoint: server.token_endpoint.text().to_owned(),
        revocation_endpoint: server.revocation_endpoint.as_ref().map(|url| url.text().to_owned()),
        asked,
        until,
    })
}

/// The scopes to ask for: what the user says; else what the endpoint asks for, by its challenge or else by its metadata,
/// and all that was asked for or granted before or found missing since, for nothing is to be lost by signing in again.
pub fn scopes(
    options: &Options,
    challenged: Option<&[String]>,
    supported: &[String],
    server: &Metadata,
    before: Option<&Record>,
) -> Vec<String> {
    if let Some(scopes) = &options.scope {
        return scopes.clone();
    }
    let mut asked: Vec<String> = Vec::new();
    let mut add = |scopes: &[String]| {
        for scope in scopes {
            if !asked.contains(scope) {
                asked.push(scope.clone());
            }
        }
    };
    add(challenged.unwrap_or(supported));
    if let Some(record) = before {
        add(&record.asked);
        add(&record.granted);
        add(&record.missing);
    }
    // Alone it would stand for no scope of the endpoint's at all, where leaving the parameter out means the server's choice.
    if !asked.is_empty()
        && !asked.iter().any(|scope| scope == OFFLINE)
        && server.scopes.iter().any(|scope| scope == OFFLINE)
    {
        asked.push(OFFLINE.to_owned());
    }
    asked
}

/// Why a redirect brings no code.
#[derive(Debug)]
pub enum NoCode {
    /// The person said no, or the server for them.
    Declined(Problem),
    /// Anything else.
    Failed(Problem),
}

/// What a redirect with the right state brings. Nothing else of it is believed, or shown, before its issuer is right.
///
/// # Errors
/// It comes from another server than was asked, or brings no code.
pub fn code(pending: &Pending, answered: Answered) -> Result<AuthorizationCode, NoCode> {
    let failed = |why: String| NoCode::Failed(Problem::failed(why));
    match &answered.iss {
        Some(iss) if *iss == pending.issuer => {}
        Some(iss) => {
            return Err(failed(format!(
                "the browser came back from {}, and the sign-in was begun at {}; nothing of that answer is used (RFC 9207): sign in again, and if it happens again, do not trust this endpoint",
                quoted(iss, 200),
                quoted(&pending.issuer, 200)
            )));
        }
        None if pending.issuer_announced => {
            return Err(failed(format!(
                "the browser came back without the name of the server, which {} announces (RFC 9207); nothing of that answer is used: sign in again, or tell its operator",
                quoted(&pending.issuer, 200)
            )));
        }
        None => {}
    }
    if let Some(error) = &answered.error {
        let description = answered.error_description.as_ref().map(|text| format!(": {}", quoted(text, 200)));
        let description = description.unwrap_or_default();
        if error == "access_denied" {
            let why = format!("the sign-in was declined in the browser{description}");
            return Err(NoCode::Declined(Problem::failed(why)));
        }
        return Err(failed(format!(
            "{} refused the sign-in, {}{description}",
            quoted(&pending.issuer, 200),
            quoted(error, 60)
        )));
    }
    answered.code.ok_or_else(|| {
        failed(format!(
            "the browser came back from {} with neither a code nor an error; tell its operator",
            quoted(&pending.issuer, 200)
        ))
    })
}

/// `code_challenge` of the method S256 (RFC 7636 §4.2).
fn challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose_secret()))
}

fn random() -> Result<Secret, Problem> {
    let mut bytes = zeroize::Zeroizing::new([0; RANDOM]);
    SystemRandom::new()
        .fill(&mut *bytes)
        .map_err(|_| Problem::failed("the system has no random numbers to sign in with; try again"))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::signin::metadata::tests::metadata;
    use crate::store::{ClientAuthentication, ClientOrigin};
    use serde_json::json;
    use std::collections::BTreeMap;
    use url::Url;

    pub(in crate::signin) fn client() -> Client {
        Client {
            id: "c&d".into(),
            secret: None,
            secret_expires_at: None,
            authentication: ClientAuthentication::None,
            origin: ClientOrigin::Given,
            redirect_uri: None,
        }
    }

    fn pending(announced: bool, asked: &[&str]) -> Pending {
        let server = metadata(|document| {
            document["authorization_response_iss_parameter_supported"] = announced.into();
            document["authorization_endpoint"] = "https://as/authorize?tenant=1".into();
        });
        let asked = asked.iter().map(|&scope| scope.to_owned()).collect();
        begin(&server.unwrap(), client(), "https://h".into(), asked, "http://127.0.0.1:1/callback", 9)
            .unwrap()
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into());
        assert_eq!(challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_request_says_everything_once_and_keeps_what_the_url_had() {
        let pending = pending(true, &["a", "b"]);
        let link = Url::parse(pending.link.expose_secret()).unwrap();
        let said: BTreeMap<_, _> = link.query_pairs().into_owned().collect();
        assert_eq!(link.query_pairs().count(), said.len());
        let expected = [
            ("client_id", "c&d"),
            ("code_challenge", &challenge(&pending.verifier.0)),
            ("code_challenge_method", "S256"),
            ("redirect_uri", "http://127.0.0.1:1/callback"),
            ("resource", "https://h"),
            ("response_type", "code"),
            ("scope", "a b"),
            ("state", pending.state.expose_secret()),
            ("tenant", "1"),
        ];
        let expected: BTreeMap<_, _> =
            expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(said, expected);
        assert_eq!((pending.state.expose_secret().len(), pending.verifier.0.expose_secret().len()), (43, 43));
        assert_ne!(pending.state.expose_secret(), pending.verifier.0.expose_secret());
    }

    #[test]
    fn no_scope_means_no_parameter_and_no_two_requests_are_alike() {
        let (one, two) = (pending(true, &[]), pending(true, &[]));
        assert!(!one.link.expose_secret().contains("scope"));
        assert!(one.state != two.state && one.verifier != two.verifier);
    }

    fn asked(
        options: &Options,
        challenged: Option<&str>,
        supported: &str,
        server: &str,
        before: Option<&Record>,
    ) -> String {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let server = metadata(|document| document["scopes_supported"] = json!(list(server))).unwrap();
        let challenged = challenged.map(list);
        scopes(options, challenged.as_deref(), &list(supported), &server, before).join(" ")
    }

    #[test]
    fn the_challenge_says_what_to_ask_for_then_the_metadata_then_nobody() {
        let none = Options::default();
        assert_eq!(asked(&none, Some("a b"), "c d", "", None), "a b");
        assert_eq!(asked(&none, None, "c d", "x", None), "c d");
        assert_eq!(asked(&none, None, "", "x offline_access", None), "");
        assert_eq!(asked(&none, Some("a"), "", "x offline_access", None), "a offline_access");
        let options = Options { scope: Some(vec!["mine".into()]), ..Options::default() };
        assert_eq!(asked(&options, Some("a"), "c", "offline_access", None), "mine");
    }

    #[test]
    fn nothing_is_lost_by_asking_for_more() {
        let list = |scopes: &[&str]| scopes.iter().map(|&scope| scope.to_owned()).collect::<Vec<_>>();
        let record = Record {
            issuer: "https://as".into(),
            resource: "https://h".into(),
            client: client(),
            token_endpoint: "https://as/token".into(),
            revocation_endpoint: None,
            signed_in_at: 0,
            asked: list(&["a", "b"]),
            granted: list(&["a", "c"]),
            missing: list(&["d"]),
            tokens: None,
        };
        assert_eq!(asked(&Options::default(), Some("e a"), "x", "", Some(&record)), "e a b c d");
    }

    fn answered(iss: Option<&str>, code: bool, error: Option<&str>) -> Answered {
        Answered {
            iss: iss.map(str::to_owned),
            code: code.then(|| AuthorizationCode(Secret::new("the-code".into()))),
            error: error.map(str::to_owned),
            error_description: error.map(|_| "described".to_owned()),
        }
    }

    #[test]
    fn the_issuer_comes_before_the_code() {
        for (announced, iss, good) in [
            (true, Some("https://as"), true),
            (true, None, false),
            (false, Some("https://as"), true),
            (false, None, true),
            (true, Some("https://as/"), false),
            (false, Some("https://evil"), false),
            (false, Some("HTTPS://as"), false),
            (false, Some(""), false),
        ] {
            let found = code(&pending(announced, &[]), answered(iss, true, None));
            assert_eq!(found.is_ok(), good, "{announced} {iss:?}");
        }
    }

    #[test]
    fn an_error_is_shown_only_where_its_issuer_is_right() {
        let refused = |iss: Option<&str>, error: &str| {
            code(&pending(true, &[]), answered(iss, true, Some(error))).unwrap_err()
        };
        let why = |iss: Option<&str>, error: &str| match refused(iss, error) {
            NoCode::Failed(problem) => problem.why,
            NoCode::Declined(problem) => panic!("{problem}"),
        };
        let NoCode::Declined(declined) = refused(Some("https://as"), "access_denied") else { panic!() };
        assert_eq!(declined.why, "the sign-in was declined in the browser: \"described\"");
        assert!(!why(None, "access_denied").contains("declined"));
        assert!(why(Some("https://as"), "server_error").contains("\"server_error\": \"described\""));
        for iss in [Some("https://evil"), None] {
            let why = why(iss, "server_error");
            assert!(!why.contains("server_error") && !why.contains("described"), "{why}");
        }
        let nothing = code(&pending(true, &[]), answered(Some("https://as"), false, None));
        let NoCode::Failed(nothing) = nothing.unwrap_err() else { panic!() };
        assert!(nothing.why.contains("neither a code nor an error"));
    }
}
