//! Who we are at the authorization server (F13 to F15 of the field's complaints).

use serde_json::{Value, json};

use super::{Place, leaves, works};
use crate::support::{AuthMethod, AuthorityBuilder, EndpointBuilder, Era, now, now_in_ms};

fn same(endpoint: EndpointBuilder) -> EndpointBuilder {
    endpoint
}

/// The stored access token is over.
fn expire(place: &Place) {
    place.authority.expire_everything();
    place.folder.change_record(&place.url(), |record| {
        record["tokens"]["obtained_at"] = (now_in_ms() - 7_200_000).into();
        record["tokens"]["expires_at"] = (now_in_ms() - 3_600_000).into();
    });
}

#[tokio::test]
async fn a_registration_says_who_we_are() {
    let place = Place::new().await;
    place.login(&[]).await;
    let request = place.authority.requests_of("/register").swap_remove(0);
    let redirect = request.json["redirect_uris"][0].as_str().unwrap();
    assert!(redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/callback"), "{redirect}");
    for (name, value) in [
        ("application_type", json!("native")),
        ("client_name", json!("mcp-hasp")),
        ("grant_types", json!(["authorization_code", "refresh_token"])),
        ("response_types", json!(["code"])),
        ("token_endpoint_auth_method", json!("none")),
        ("software_version", json!(env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(request.json[name], value, "{name}");
    }
    assert_eq!(request.json["software_id"].as_str().unwrap().len(), 36);
    place.finish();
}

/// The server was set up anew: the renewal learns it, one new registration and one sign-in follow, and a server that goes
/// on to know nobody is not asked in a loop.
#[tokio::test]
async fn a_registration_that_the_server_forgot_is_made_anew() {
    let place = Place::new().await;
    place.login(&[]).await;
    expire(&place);
    place.authority.forget_clients();
    let mut harness = place.launch().start();
    let link = harness.sign_in_link().await;
    assert_eq!(place.authority.sign_in(&link).await.0, 200);
    works(&mut harness, Era::Modern).await;
    assert_eq!(harness.sign_in_links().len(), 1);
    leaves(harness).await;
    assert_eq!(place.authority.requests_of("/register").len(), 2);
    assert_eq!(place.authority.refreshes(), 1);

    // It forgets it again before the code comes.
    let mut login = place.launch().arg("--login").spawn();
    let link = login.sign_in_link().await;
    let location = place.authority.approve(&link).await;
    place.authority.forget_clients();
    assert_eq!(place.authority.visit(&location).await.0, 400);
    let run = login.finish().await;
    assert_eq!(run.code, 77, "{}", run.stderr);
    assert!(run.stderr.contains("registers itself anew"), "{}", run.stderr);
    place.login(&[]).await;
    assert_eq!(place.authority.requests_of("/register").len(), 3);
    place.finish();
}

#[tokio::test]
async fn without_registration_the_ways_out_are_named() {
    let place = Place::with(AuthorityBuilder::no_registration, same).await;
    place.no_login(&[], &["--client-id", "--client-metadata-url", "--token-file"]).await;
    place.finish();

    for (status, body, words) in [
        (403, json!({}), "HTTP 403"),
        (400, json!({"error": "invalid_redirect_uri", "error_description": "no loopback"}), "no loopback"),
        (500, json!("x"), "HTTP 500"),
        (201, json!({}), "no client_id"),
        (201, json!({"client_id": "a", "token_endpoint_auth_method": "private_key_jwt"}), "not asked for"),
    ] {
        let place = Place::with(
            |authority| authority.registration(move |_| (status, body.clone())).allow("register"),
            same,
        )
        .await;
        let run = place.launch().arg("--login").run().await;
        assert_eq!(run.code, 77, "{}", run.stderr);
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
        assert!(
            status != 400 || run.stderr.contains("--client-id") && run.stderr.contains("--callback-port")
        );
        assert!(!run.stderr.contains("code_challenge="));
        assert_eq!(place.authority.requests_of("/register").len(), 1);
        place.finish();
    }
}

#[tokio::test]
async fn a_given_client_id_registers_nobody() {
    let place = Place::with(|authority| authority.client("x y", None, AuthMethod::None), same).await;
    place.login(&["--client-id", "x y"]).await;
    expire(&place);
    place.serves().await;
    assert!(place.authority.requests_of("/register").is_empty());
    assert_eq!(place.authority.requests_of("/authorize")[0].query["client_id"], "x y");
    assert!(place.authority.requests_of("/token").iter().all(|request| request.form["client_id"] == "x y"));
    place.finish();
}

/// The way that metadata names; by the header where it names none. Id and secret are form-encoded before Base64.
#[tokio::test]
async fn a_client_secret_is_shown_in_the_way_the_server_takes() {
    for (method, says) in [
        (AuthMethod::Basic, Some(json!(["client_secret_basic", "client_secret_post"]))),
        (AuthMethod::Post, Some(json!(["private_key_jwt", "client_secret_post"]))),
        (AuthMethod::Basic, None),
    ] {
        let place = Place::with(
            move |authority| {
                authority.client("a b", Some("s:%+ü"), method).metadata(move |document| {
                    let members = document.as_object_mut().unwrap();
                    members.remove("token_endpoint_auth_methods_supported");
                    members.extend(
                        says.clone().map(|says| ("token_endpoint_auth_methods_supported".into(), says)),
                    );
                })
            },
            same,
        )
        .await;
        let file = place.folder.path().join("secret");
        std::fs::write(&file, "s:%+ü\n").unwrap();
        let given = ["--client-id", "a b", "--client-secret-file", file.to_str().unwrap()];
        place.login(&given).await;
        expire(&place);
        let mut harness = place.launch().args(&given).start();
        works(&mut harness, Era::Modern).await;
        leaves(harness).await;
        let run = place.launch().args(&given).arg("--logout").run().await;
        assert!(run.code == 0 && !run.stderr.contains("revoked"), "{}", run.stderr);
        // The strict server has judged how each of them was sent.
        assert_eq!(place.authority.requests_of("/token").len(), 2);
        assert_eq!(place.authority.requests_of("/revoke").len(), 2);
        place.finish();
    }
}

#[tokio::test]
async fn a_registered_client_shows_its_secret_as_it_was_registered() {
    for method in [AuthMethod::Basic, AuthMethod::Post] {
        let registered = move |asked: &Value| {
            let answer = json!({
                "client_id": "a b", "client_secret": "s:%+", "client_secret_expires_at": 0,
                "token_endpoint_auth_method": method.name(), "redirect_uris": asked["redirect_uris"],
            });
            (201, answer)
        };
        let place = Place::with(|authority| authority.registration(registered), same).await;
        place.login(&[]).await;
        expire(&place);
        place.serves().await;
        place.finish();
    }
}

#[tokio::test]
async fn a_client_secret_that_has_ended_is_not_used_for_another_sign_in() {
    let registered = move |asked: &Value| {
        let answer = json!({
            "client_id": format!("client-{}", asked["redirect_uris"][0].as_str().unwrap()),
            "client_secret": "s", "client_secret_expires_at": now() + 3600,
            "token_endpoint_auth_method": "client_secret_basic", "redirect_uris": asked["redirect_uris"],
        });
        (201, answer)
    };
    let place = Place::with(|authority| authority.registration(registered), same).await;
    place.login(&[]).await;
    place.login(&[]).await;
    assert_eq!(place.authority.requests_of("/register").len(), 1);
    place.folder.change_record(&place.url(), |record| {
        record["client"]["secret_expires_at"] = (now() - 10).into();
    });
    place.login(&[]).await;
    assert_eq!(place.authority.requests_of("/register").len(), 2);
    place.finish();
}

#[tokio::test]
async fn the_url_of_a_document_is_a_client_id_where_the_server_takes_it() {
    let url = "https://client.example/mcp-hasp.json";
    let place = Place::with(AuthorityBuilder::client_id_documents, same).await;
    place.login(&["--client-metadata-url", url]).await;
    assert!(place.authority.requests_of("/register").is_empty());
    assert_eq!(place.authority.requests_of("/authorize")[0].query["client_id"], url);
    place.finish();

    let place = Place::new().await;
    let run = place.login(&["--client-metadata-url", url]).await;
    assert!(run.stderr.contains("takes no client id metadata documents"), "{}", run.stderr);
    assert_eq!(place.authority.requests_of("/register").len(), 1);
    place.finish();
}

/// A server that knows the one port that was registered: the port is kept, and where it is taken by somebody else, the
/// registration is made anew (F07).
#[tokio::test]
async fn a_registration_keeps_its_port_and_is_renewed_where_it_is_taken() {
    let place = Place::with(AuthorityBuilder::exact_redirect_port, same).await;
    place.login(&[]).await;
    place.login(&[]).await;
    assert_eq!(place.authority.requests_of("/register").len(), 1);
    let asked = place.authority.requests_of("/authorize");
    let uri = asked[0].query["redirect_uri"].clone();
    assert_eq!(asked[1].query["redirect_uri"], uri);

    let port = url::Url::parse(&uri).unwrap().port().unwrap();
    let taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    place.login(&[]).await;
    drop(taken);
    assert_eq!(place.authority.requests_of("/register").len(), 2);
    assert_ne!(place.authority.requests_of("/authorize")[2].query["redirect_uri"], uri);
    place.finish();
}

#[tokio::test]
async fn a_fixed_port_is_used_or_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let fixed = ["--callback-port", &port.to_string()];
    let place = Place::new().await;
    place.no_login(&fixed, &[&format!("127.0.0.1:{port}"), "--callback-port"]).await;
    drop(free);
    place.login(&fixed).await;
    let uri = format!("http://127.0.0.1:{port}/callback");
    assert_eq!(place.authority.requests_of("/authorize")[0].query["redirect_uri"], uri);
    place.finish();
}
