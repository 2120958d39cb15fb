//! The fake authorization server and the protected endpoint, tested against themselves: no program between.

use std::{collections::BTreeMap, time::Duration};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use url::form_urlencoded;

use crate::support::{
    AuthMethod, Authority, AuthorityBuilder, ConfigDir, Endpoint, Harness, MetadataPlace, Page, PrmPlace,
    SignIn, get, links_in, send_raw, try_visit,
};

const VERIFIER: &str = "0123456789-0123456789-0123456789-0123456789";
const STATE: &str = "a-state-of-22-characters";
const CALLBACK: &str = "http://127.0.0.1:50000/callback";
const RESOURCE: &str = "http://127.0.0.1:1/mcp";

type Pairs = Vec<(String, String)>;

fn form(pairs: &Pairs) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn set(pairs: &mut Pairs, name: &str, value: &str) {
    pairs.retain(|(known, _)| known != name);
    if value != "(none)" {
        pairs.push((name.to_owned(), value.to_owned()));
    }
}

async fn post(authority: &Authority, path: &str, headers: &str, body: &str) -> Page {
    let address = format!("127.0.0.1:{}", authority.port());
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let text = format!("{head}{headers}Content-Length: {length}\r\n\r\n{body}");
    send_raw(&address, &text, None).await.unwrap()
}

async fn post_form(authority: &Authority, path: &str, headers: &str, pairs: &Pairs) -> (u16, Value) {
    let headers = format!("Content-Type: application/x-www-form-urlencoded\r\n{headers}");
    let page = post(authority, path, &headers, &form(pairs)).await;
    (page.status, serde_json::from_str(&page.body).unwrap_or_default())
}

fn registration() -> Value {
    json!({
        "client_name": "by hand", "application_type": "native", "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none", "software_id": "hand", "software_version": "1",
    })
}

async fn register(authority: &Authority, body: &Value) -> (u16, Value) {
    let headers = "Content-Type: application/json\r\n";
    let page = post(authority, "/register", headers, &body.to_string()).await;
    (page.status, serde_json::from_str(&page.body).unwrap_or_default())
}

fn authorization(client: &str) -> Pairs {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let pairs = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("state", STATE),
        ("resource", RESOURCE),
        ("scope", "a b"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn link(authority: &Authority, pairs: &Pairs) -> String {
    format!("{}/authorize?{}", authority.issuer(), form(pairs))
}

fn parameters(location: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(location.split_once('?').unwrap().1.as_bytes()).into_owned().collect()
}

fn exchange(client: &str, code: &str) -> Pairs {
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("client_id", client),
        ("code_verifier", VERIFIER),
        ("resource", RESOURCE),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn refresh(client: &str, token: &str) -> Pairs {
    let pairs = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", client),
        ("resource", RESOURCE),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

fn text<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer[name].as_str().unwrap_or_else(|| panic!("no {name} in {answer}"))
}

/// A server that knows the resource.
async fn started(builder: AuthorityBuilder) -> Authority {
    let authority = builder.start().await;
    authority.protects(RESOURCE);
    authority
}

/// A public client `hand`, which needs no registration.
fn with_client() -> AuthorityBuilder {
    Authority::builder().client("hand", None, AuthMethod::None)
}

async fn code_of(authority: &Authority) -> String {
    parameters(&authority.approve(&link(authority, &authorization("hand"))).await)["code"].clone()
}

async fn signed_in(authority: &Authority) -> Value {
    let code = code_of(authority).await;
    let (status, answer) = post_form(authority, "/token", "", &exchange("hand", &code)).await;
    assert_eq!(status, 200, "{answer}");
    answer
}

/// One of the violations so far holds those words; all are taken.
fn broke(authority: &Authority, words: &str) {
    let violations = authority.take_violations();
    assert!(violations.iter().any(|text| text.contains(words)), "no {words:?} in {violations:?}");
}

#[tokio::test]
async fn a_right_flow_by_hand_is_no_violation() {
    let authority = started(Authority::builder()).await;
    let place = format!("{}/.well-known/oauth-authorization-server", authority.issuer());
    let document: Value = serde_json::from_str(&get(&place, "", None).await.unwrap().body).unwrap();
    assert_eq!(document["issuer"], authority.issuer());

    let (status, client) = register(&authority, &registration()).await;
    assert_eq!(status, 201, "{client}");
    let client = text(&client, "client_id").to_owned();
    let mut asked = authorization(&client);
    set(&mut asked, "redirect_uri", "http://127.0.0.1:50001/callback");
    let location = authority.approve(&link(&authority, &asked)).await;
    assert!(location.starts_with("http://127.0.0.1:50001/callback?"), "{location}");
    let got = parameters(&location);
    assert_eq!((got["state"].as_str(), got["iss"].as_str()), (STATE, authority.issuer().as_str()));
    let mut pairs = exchange(&client, &got["code"]);
    set(&mut pairs, "redirect_uri", "http://127.0.0.1:50001/callback");
    let (status, first) = post_form(&authority, "/token", "", &pairs).await;
    assert_eq!(
        (status, &first["expires_in"], &first["scope"]),
        (200, &json!(3600), &json!("a b")),
        "{first}"
    );
    assert!(authority.accepts(text(&first, "access_token")));

    let old = text(&first, "refresh_token");
    let (status, second) = post_form(&authority, "/token", "", &refresh(&client, old)).await;
    assert_eq!(status, 200, "{second}");
    let new = text(&second, "refresh_token");
    assert!(authority.renews(new) && !authority.renews(old));
    assert_eq!((authority.refreshes(), authority.spent_reuses()), (1, 0));

    let pairs = [("token", new), ("token_type_hint", "refresh_token"), ("client_id", &client)];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    assert_eq!(post_form(&authority, "/revoke", "", &pairs).await.0, 200);
    assert_eq!(authority.revoked(), [new]);
    assert!(!authority.accepts(text(&second, "access_token")));
    authority.finish();
}

#[tokio::test]
async fn a_spent_refresh_token_ends_the_grant() {
    for allowed in [false, true] {
        let builder = with_client();
        let authority = started(if allowed { builder.allow_reuse() } else { builder }).await;
        let first = signed_in(&authority).await;
        let pairs = refresh("hand", text(&first, "refresh_token"));
        let (_, second) = post_form(&authority, "/token", "", &pairs).await;
        let (status, answer) = post_form(&authority, "/token", "", &pairs).await;
        assert_eq!((status, text(&answer, "error")), (400, "invalid_grant"));
        assert_eq!((authority.spent_reuses(), authority.refreshes()), (1, 2));
        assert!(!authority.accepts(text(&second, "access_token")));
        assert!(!authority.renews(text(&second, "refresh_token")));
        if !allowed {
            broke(&authority, "was spent");
        }
    }
}

#[tokio::test]
async fn each_wrong_authorization_request_is_named() {
    let cases = [
        ("response_type", "token", "response_type"),
        ("client_id", "nobody", "an unknown client_id"),
        ("redirect_uri", "http://127.0.0.1:50000/other", "redirect_uri"),
        ("redirect_uri", "http://localhost:50000/callback", "redirect_uri"),
        ("redirect_uri", "https://127.0.0.1:50000/callback", "redirect_uri"),
        ("code_challenge", "short", "code_challenge"),
        ("code_challenge", "(none)", "code_challenge"),
        ("code_challenge_method", "plain", "S256"),
        ("state", "short", "22 characters"),
        ("resource", "http://127.0.0.1:1/mcp/", "another resource"),
        ("resource", "(none)", "another resource"),
        ("scope", "", "an empty scope"),
        ("prompt", "login", "a parameter prompt"),
    ];
    for (name, value, words) in cases {
        let authority = started(with_client()).await;
        let mut pairs = authorization("hand");
        set(&mut pairs, name, value);
        let page = authority.open(&link(&authority, &pairs)).await;
        assert_eq!(page.status, 400, "{name}={value}");
        broke(&authority, words);
    }
}

#[tokio::test]
async fn states_and_challenges_are_good_for_one_link() {
    let authority = started(with_client()).await;
    let pairs = authorization("hand");
    authority.approve(&link(&authority, &pairs)).await;
    authority.approve(&link(&authority, &pairs)).await;
    assert_eq!(authority.take_violations(), Vec::<String>::new());
    let mut other = pairs.clone();
    set(&mut other, "scope", "c");
    authority.open(&link(&authority, &other)).await;
    broke(&authority, "a state that was used before");
    let mut other = pairs.clone();
    set(&mut other, "state", "another-state-of-22-characters");
    authority.open(&link(&authority, &other)).await;
    broke(&authority, "a code_challenge that was used before");
}

#[tokio::test]
async fn each_wrong_code_exchange_is_named() {
    let cases = [
        ("grant_type", "password", "another grant_type"),
        ("code", "code-guessed", "never given out"),
        ("redirect_uri", "http://127.0.0.1:50001/callback", "another redirect_uri"),
        ("client_id", "nobody", "an unknown client_id"),
        ("client_id", "(none)", "no client_id"),
        ("client_secret", "s", "not authenticated by none"),
        ("code_verifier", "another-verifier-0123456789-0123456789-012345", "of something else"),
        ("code_verifier", "short", "a code_verifier that is none"),
        ("resource", "(none)", "another resource"),
        ("scope", "a", "a parameter scope"),
    ];
    for (name, value, words) in cases {
        let authority = started(with_client()).await;
        let mut pairs = exchange("hand", &code_of(&authority).await);
        set(&mut pairs, name, value);
        let (status, answer) = post_form(&authority, "/token", "", &pairs).await;
        assert!([400, 401].contains(&status), "{name}={value}: {answer}");
        broke(&authority, words);
    }
}

#[tokio::test]
async fn what_does_not_belong_on_a_token_request_is_named() {
    let cases = [
        ("Cookie: a=b\r\n", "a cookie"),
        ("X-Key: k\r\n", "for the endpoint alone"),
        ("Authorization: Bearer t\r\n", "a bearer token"),
        ("Authorization: Basic aGFuZDo=\r\n", "not authenticated by none"),
    ];
    for (header, words) in cases {
        let authority = started(with_client()).await;
        let pairs = exchange("hand", &code_of(&authority).await);
        let (status, _) = post_form(&authority, "/token", header, &pairs).await;
        assert!([400, 401].contains(&status), "{header}");
        broke(&authority, words);
    }
    let authority = started(with_client()).await;
    let pairs = exchange("hand", &code_of(&authority).await);
    let page = post(&authority, "/token", "Content-Type: application/json\r\n", &form(&pairs)).await;
    assert_eq!(page.status, 400);
    broke(&authority, "no form");
    let (status, _) = post_form(&authority, "/token?a=b", "", &pairs).await;
    assert_eq!(status, 400);
    broke(&authority, "a query");
}

#[tokio::test]
async fn a_code_is_good_once_and_a_refresh_has_no_scope() {
    let authority = started(with_client()).await;
    let code = code_of(&authority).await;
    let (_, answer) = post_form(&authority, "/token", "", &exchange("hand", &code)).await;
    let mut pairs = refresh("hand", text(&answer, "refresh_token"));
    set(&mut pairs, "scope", "a");
    assert_eq!(post_form(&authority, "/token", "", &pairs).await.0, 400);
    broke(&authority, "a parameter scope");
    assert!(authority.renews(text(&answer, "refresh_token")));
    assert_eq!(post_form(&authority, "/token", "", &exchange("hand", &code)).await.0, 400);
    broke(&authority, "a code for the second time");
    assert!(!authority.accepts(text(&answer, "access_token")));
}

#[tokio::test]
async fn a_secret_goes_the_way_that_was_agreed_on() {
    let (id, secret) = ("a b", "s:%+");
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let right = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    let plain = STANDARD.encode(format!("{id}:{secret}"));
    let header = |value: &str| format!("Authorization: Basic {value}\r\n");
    for (method, good) in [(AuthMethod::Basic, 0), (AuthMethod::Post, 1)] {
        // the header, the body, both, the header not encoded, nothing
        let ways = [
            (header(&right), false),
            (String::new(), true),
            (header(&right), true),
            (header(&plain), false),
            (String::new(), false),
        ];
        for (at, (header, in_body)) in ways.into_iter().enumerate() {
            let authority = started(Authority::builder().client(id, Some(secret), method)).await;
            let (_, token) = authority.issue(RESOURCE, "a");
            let mut pairs = refresh(id, &token);
            if !header.is_empty() {
                set(&mut pairs, "client_id", "(none)");
            }
            if in_body {
                set(&mut pairs, "client_secret", secret);
            }
            let (status, answer) = post_form(&authority, "/token", &header, &pairs).await;
            if at == good {
                assert_eq!(status, 200, "{method:?} {at}: {answer}");
            } else {
                assert_eq!((status, text(&answer, "error")), (401, "invalid_client"), "{method:?} {at}");
                assert!(!authority.take_violations().is_empty());
            }
        }
    }
}

#[tokio::test]
async fn each_wrong_registration_is_named() {
    let cases = [
        ("application_type", json!("web"), "application_type"),
        ("client_name", Value::Null, "client_name"),
        ("redirect_uris", json!(["http://localhost:5/callback"]), "redirect URI"),
        ("redirect_uris", json!([]), "redirect_uris"),
        ("grant_types", json!(["authorization_code"]), "grant_types"),
        ("response_types", json!(["token"]), "response_types"),
        ("token_endpoint_auth_method", Value::Null, "token_endpoint_auth_method"),
        ("software_id", Value::Null, "software_id"),
    ];
    let authority = started(Authority::builder()).await;
    for (name, value, words) in cases {
        let mut body = registration();
        body[name] = value;
        assert_eq!(register(&authority, &body).await.0, 400, "{name}");
        broke(&authority, words);
    }
}

#[tokio::test]
async fn a_forgotten_client_is_no_violation_and_gets_nothing() {
    let authority = started(Authority::builder()).await;
    let sign_in = SignIn::issued(&authority, RESOURCE, "a");
    let client = authority.stored_client().id;
    authority.forget_clients();
    let (status, answer) = post_form(&authority, "/token", "", &refresh(&client, &sign_in.refresh)).await;
    assert_eq!((status, text(&answer, "error")), (401, "invalid_client"));
    assert_eq!(authority.open(&link(&authority, &authorization(&client))).await.status, 400);
    authority.finish();
}

#[tokio::test]
async fn a_server_that_pins_the_port_refuses_another_one_without_blame() {
    let authority = started(Authority::builder().exact_redirect_port()).await;
    let (_, client) = register(&authority, &registration()).await;
    let mut pairs = authorization(text(&client, "client_id"));
    set(&mut pairs, "redirect_uri", "http://127.0.0.1:50001/callback");
    assert_eq!(authority.open(&link(&authority, &pairs)).await.status, 400);
    set(&mut pairs, "redirect_uri", CALLBACK);
    set(&mut pairs, "state", "another-state-of-22-characters");
    set(&mut pairs, "code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest("another")));
    authority.approve(&link(&authority, &pairs)).await;
    authority.finish();
}

#[tokio::test]
async fn scripts_override_answers_and_use_nothing_up() {
    let authority = started(with_client().keep_refresh_token()).await;
    let (_, token) = authority.issue(RESOURCE, "");
    authority.set_token_handler(|_, nth| match nth {
        0 => Some((503, Vec::new(), "<p>later</p>".to_owned())),
        1 => Some((0, Vec::new(), String::new())),
        _ => None,
    });
    let pairs = refresh("hand", &token);
    assert_eq!(post_form(&authority, "/token", "", &pairs).await.0, 503);
    let address = format!("127.0.0.1:{}", authority.port());
    let body = form(&pairs);
    let head = "Content-Type: application/x-www-form-urlencoded\r\n";
    let text = format!(
        "POST /token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(send_raw(&address, &text, None).await.is_none());
    let (status, answer) = post_form(&authority, "/token", "", &pairs).await;
    assert_eq!((status, answer.get("refresh_token"), answer.get("scope")), (200, None, None));
    assert!(authority.renews(&token));
    authority.finish();
}

#[tokio::test]
async fn the_answer_of_a_held_or_slow_token_request_comes_later() {
    let authority = started(with_client().slow_token(Duration::from_millis(1))).await;
    let (_, token) = authority.issue(RESOURCE, "a");
    authority.hold_tokens();
    let pairs = refresh("hand", &token);
    let ((status, _), ()) = tokio::join!(post_form(&authority, "/token", "", &pairs), async {
        assert_eq!(authority.arrived("/token", 0).await.status, 0);
        authority.release_tokens();
    });
    assert_eq!((status, authority.requests_of("/token")[0].status), (200, 200));
}

#[tokio::test]
async fn the_metadata_is_where_it_should_be_and_nowhere_else() {
    let inserted = "/.well-known/oauth-authorization-server/tenant1";
    let places = [
        (MetadataPlace::OauthInserted, inserted),
        (MetadataPlace::OpenIdInserted, "/.well-known/openid-configuration/tenant1"),
        (MetadataPlace::OpenIdAppended, "/tenant1/.well-known/openid-configuration"),
    ];
    for (place, path) in places {
        let authority = Authority::builder().path("/tenant1").metadata_at(place).start().await;
        let origin = format!("http://127.0.0.1:{}", authority.port());
        for (_, tried) in places {
            let page = get(&format!("{origin}{tried}"), "", None).await.unwrap();
            assert_eq!(page.status == 200, tried == path, "{place:?} {tried}");
        }
        get(&format!("{origin}{path}"), "Authorization: Basic YTpi\r\n", None).await.unwrap();
        broke(&authority, "with an Authorization");
        get(&format!("{origin}/elsewhere"), "", None).await.unwrap();
        broke(&authority, "a path that nobody named");
    }
}

#[tokio::test]
async fn iss_is_announced_and_sent_as_told() {
    let announced = |authority: &Authority| {
        authority.metadata()["authorization_response_iss_parameter_supported"].as_bool()
    };
    for (builder, says, sends) in [
        (with_client().no_iss(), None, None),
        (with_client().iss("https://b.example"), Some(true), Some("https://b.example")),
        (with_client().sends_iss(false), Some(true), None),
        (with_client().announces_iss(false).iss("x"), None, Some("x")),
    ] {
        let authority = started(builder).await;
        assert_eq!(announced(&authority), says);
        let got = parameters(&authority.approve(&link(&authority, &authorization("hand"))).await);
        assert_eq!(got.get("iss").map(String::as_str), sends);
    }
}

#[tokio::test]
async fn a_person_may_say_no_and_the_browser_follows() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let callback = format!("http://{}/callback", listener.local_addr().unwrap());
    let authority = started(with_client()).await;
    let mut pairs = authorization("hand");
    set(&mut pairs, "redirect_uri", &callback);
    let link = link(&authority, &pairs);
    let denied = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        let read = stream.read(&mut head).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    };
    let (visited, head) = tokio::join!(authority.deny(&link), denied);
    assert_eq!(visited, (400, "no".to_owned()));
    assert!(head.starts_with("GET /callback?error=access_denied&"), "{head}");
    drop(listener);
    assert!(try_visit(&callback).await.is_none());
}

#[tokio::test]
async fn tokens_end_when_their_time_has_come() {
    let authority = started(with_client().token_life(1).no_expires_in()).await;
    let answer = signed_in(&authority).await;
    let access = text(&answer, "access_token");
    assert_eq!(answer.get("expires_in"), None);
    assert!(authority.accepts(access));
    tokio::time::sleep(Duration::from_millis(1050)).await;
    assert!(!authority.accepts(access));
    let (access, refresh) = authority.issue(RESOURCE, "a");
    authority.expire(&access);
    assert!(!authority.accepts(&access) && authority.renews(&refresh));
    authority.revoke_everything();
    assert!(!authority.renews(&refresh));
}

#[tokio::test]
async fn a_server_over_tls_and_one_that_restarts_answer_as_before() {
    let mut authority = started(with_client().tls()).await;
    code_of(&authority).await;
    authority.stop().await;
    authority.start_again().await;
    let page = authority.open(&format!("{}/.well-known/openid-configuration", authority.issuer())).await;
    assert_eq!(page.status, 404);
}

/// Opens at an endpoint, with a token or none.
async fn discover(endpoint: &Endpoint, method: &str, more: &str, params: &str) -> Page {
    let url = endpoint.url();
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
    let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    let era = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
    let length = body.len();
    let text = format!(
        "POST /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{accept}{era}{more}Content-Length: {length}\r\n\r\n{body}"
    );
    send_raw(address, &text, None).await.unwrap()
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[tokio::test]
async fn a_protected_endpoint_takes_its_own_tokens_alone() {
    let authority = Authority::builder().start().await;
    let endpoint = Endpoint::modern().protected_by(&authority).challenge_scope("a b").start().await;
    let refused = discover(&endpoint, "server/discover", "", "").await;
    let origin = endpoint.url().replace("/mcp", "");
    let place = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let said = format!(r#"Bearer resource_metadata="{place}", scope="a b""#);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(said.as_str())));
    let document: Value = serde_json::from_str(&get(&place, "", None).await.unwrap().body).unwrap();
    assert_eq!(document["resource"], endpoint.url());
    assert_eq!(document["authorization_servers"], json!([authority.issuer()]));

    let (good, _) = authority.issue(&endpoint.url(), "a");
    assert_eq!(discover(&endpoint, "server/discover", &bearer(&good), "").await.status, 200);
    authority.expire(&good);
    let dead = discover(&endpoint, "server/discover", &bearer(&good), "").await;
    assert_eq!(dead.status, 401);
    assert!(dead.header("www-authenticate").unwrap().starts_with(r#"Bearer error="invalid_token", "#));
    assert_eq!(endpoint.take_violations(), Vec::<String>::new());

    let (other, _) = authority.issue("http://127.0.0.1:1/other", "a");
    for (token, words) in [(other, "another resource"), (Authority::foreign_token(), "has issued")] {
        assert_eq!(discover(&endpoint, "server/discover", &bearer(&token), "").await.status, 401);
        let violations = endpoint.take_violations().join("\n");
        assert!(violations.contains(words), "{violations}");
    }
    get(&place, &bearer("t"), None).await.unwrap();
    assert!(endpoint.take_violations().join("\n").contains("with an Authorization"));
}

#[tokio::test]
async fn a_tool_may_need_a_scope() {
    let authority = Authority::builder().start().await;
    let endpoint = Endpoint::modern().protected_by(&authority).needs_scope("echo", "b").start().await;
    for (scopes, status) in [("a", 403), ("a b", 200)] {
        let (token, _) = authority.issue(&endpoint.url(), scopes);
        let headers = format!("{}Mcp-Name: echo\r\n", bearer(&token));
        let params = r#""name":"echo","arguments":{"text":"x"},"#;
        let page = discover(&endpoint, "tools/call", &headers, params).await;
        assert_eq!(page.status, status, "{page:?}");
        if status == 403 {
            let said = page.header("www-authenticate").unwrap();
            assert!(said.starts_with(r#"Bearer error="insufficient_scope", scope="b""#), "{said}");
        }
    }
    endpoint.finish();
}

#[tokio::test]
async fn the_resource_document_is_where_it_was_put() {
    let authority = Authority::builder().start().await;
    let places = [
        (PrmPlace::Path, [true, false]),
        (PrmPlace::Root, [false, true]),
        (PrmPlace::Both, [true, true]),
        (PrmPlace::None, [false, false]),
    ];
    for (place, found) in places {
        let endpoint = Endpoint::modern()
            .path("/a/mcp")
            .prm(place)
            .prm_absent(403)
            .prm_document(|document| document["scopes_supported"] = json!(["x"]))
            .challenge(|default| vec!["Basic realm=\"x\"".to_owned(), default])
            .no_challenge_pointer()
            .protected_by(&authority)
            .start()
            .await;
        let origin = endpoint.url().replace("/a/mcp", "");
        for (path, found) in ["/a/mcp", ""].into_iter().zip(found) {
            let link = format!("{origin}/.well-known/oauth-protected-resource{path}");
            let page = get(&link, "", None).await.unwrap();
            assert_eq!(page.status, if found { 200 } else { 403 }, "{place:?} {path}");
            assert_eq!(page.body.contains("scopes_supported"), found);
        }
        let refused = discover(&endpoint, "server/discover", "", "").await;
        let fields = refused.headers.iter().filter(|(name, _)| name == "www-authenticate");
        let fields: Vec<&str> = fields.map(|(_, value)| value.as_str()).collect();
        assert_eq!(fields, ["Basic realm=\"x\"", "Bearer"]);
        endpoint.finish();
    }
}

#[tokio::test]
async fn a_store_by_hand_is_read_back_and_is_for_its_owner_alone() {
    let authority = Authority::builder().start().await;
    let folder = ConfigDir::new();
    assert_eq!(folder.read(), Value::Null);
    let sign_in = SignIn::issued(&authority, RESOURCE, "a b").times(100, -10);
    folder.write(&[&sign_in]);
    let record = folder.record(RESOURCE);
    assert_eq!(record["tokens"]["access"], sign_in.access);
    let times = ["obtained_at", "expires_at"].map(|name| record["tokens"][name].as_u64().unwrap());
    assert_eq!((times[1] - times[0]) / 1000, 90);
    let read: mcp_hasp::store::Record = serde_json::from_value(record.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), record, "the program's own shape");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&folder.file())), (0o700, 0o600));
    }
}

#[test]
fn a_link_on_stderr_counts_once_and_when_its_line_is_whole() {
    let link = "http://a/authorize?x=1&code_challenge=c";
    assert_eq!(links_in(&format!("mcp-hasp: sign in at {link}\n{link}\n{link}&half")), [link]);
    assert_eq!(links_in(&format!(r#"{{"message":"see {link}"}}{}"#, '\n')), [link]);
    assert!(links_in(link).is_empty());
}

#[tokio::test]
async fn an_errand_is_run_to_its_end() {
    let run = Harness::launch_bare().arg("--version").run().await;
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.starts_with("mcp-hasp "), "{}", run.stdout);
}
