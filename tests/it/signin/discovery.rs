//! Whom to ask: from the endpoint's challenge to the metadata of its authorization server (F16 to F19, F23 to F25 of the
//! field's complaints).

use serde_json::{Value, json};

use super::Place;
use crate::support::{Authority, ConfigDir, Endpoint, EndpointBuilder, MetadataPlace, PrmPlace, SignIn};

const METADATA: &str = "/.well-known/oauth-authorization-server";

fn same(endpoint: EndpointBuilder) -> EndpointBuilder {
    endpoint
}

#[tokio::test]
async fn an_authorization_server_elsewhere_learns_nothing_that_is_for_the_endpoint() {
    let place = Place::new().await;
    let header = ["--header", "X-Key: k3y"];
    place.login(&header).await;
    let mut harness = place.launch().args(&header).start();
    super::works(&mut harness, crate::support::Era::Modern).await;
    super::leaves(harness).await;
    assert!(
        place.endpoint.requests_of("tools/call").iter().all(|request| request.header("x-key") == Some("k3y"))
    );
    for request in place.authority.requests() {
        assert!(request.header("x-key").is_none(), "{request:?}");
        assert!(
            request.header("cookie").is_none() && request.header("authorization").is_none(),
            "{request:?}"
        );
    }
    place.finish();
}

#[tokio::test]
async fn an_issuer_with_a_path_is_found_at_each_of_its_places() {
    for at in [MetadataPlace::OauthInserted, MetadataPlace::OpenIdInserted, MetadataPlace::OpenIdAppended] {
        let place = Place::with(
            |authority| {
                // Another tenant, whose metadata is nobody's business here.
                let other = |_: &_| (200, json_type(), json!({"issuer": "http://127.0.0.1:1"}).to_string());
                authority.path("/tenant1").metadata_at(at).on(METADATA, other)
            },
            same,
        )
        .await;
        place.login(&[]).await;
        assert!(place.authority.requests().iter().all(|request| request.path != METADATA), "{at:?}");
        place.serves().await;
        place.finish();
    }
}

fn json_type() -> Vec<(String, String)> {
    vec![("content-type".to_owned(), "application/json".to_owned())]
}

#[tokio::test]
async fn the_endpoints_document_is_found_at_either_place() {
    for (at, absent) in
        [(PrmPlace::Root, 401), (PrmPlace::Root, 403), (PrmPlace::Root, 404), (PrmPlace::Path, 404)]
    {
        let endpoint = |endpoint: EndpointBuilder| {
            endpoint.path("/a/mcp").prm(at).prm_absent(absent).no_challenge_pointer()
        };
        let place = Place::with(|authority| authority, endpoint).await;
        place.login(&[]).await;
        place.serves().await;
        place.finish();
    }
}

#[tokio::test]
async fn a_document_for_something_else_is_not_used() {
    for resource in ["/a/mcp2", "/a/mc", "/b", "/a/mcp/x", "/a/mcp#x"] {
        let document = move |document: &mut Value| {
            let url = document["resource"].as_str().unwrap().to_owned();
            document["resource"] = format!("{}{resource}", url.strip_suffix("/a/mcp").unwrap()).into();
        };
        let place = Place::with(|a| a, |e| e.path("/a/mcp").prm(PrmPlace::Root).prm_document(document)).await;
        place.no_login(&[], &[resource, "RFC 9728"]).await;
        assert!(place.authority.requests().is_empty(), "{resource}");
        place.finish();
    }
    for resource in ["https://elsewhere.example/a/mcp", "http://user@127.0.0.1/a/mcp", "x", ""] {
        let document = move |document: &mut Value| document["resource"] = resource.into();
        let place = Place::with(|a| a, |e| e.path("/a/mcp").prm_document(document)).await;
        place.no_login(&[], &["RFC 9728"]).await;
        place.finish();
    }
}

#[tokio::test]
async fn an_issuer_with_another_spelling_is_refused_and_both_are_said() {
    let place = Place::with(
        |authority| {
            authority.metadata(|document| {
                document["issuer"] = format!("{}/", document["issuer"].as_str().unwrap()).into();
            })
        },
        same,
    )
    .await;
    let issuer = place.authority.issuer();
    place.no_login(&[], &[&format!("\"{issuer}\""), &format!("\"{issuer}/\""), "operator"]).await;
    assert!(place.authority.requests().iter().all(|request| request.path.starts_with("/.well-known/")));
    place.finish();
}

/// What the document says is sent, character by character; the server compares it as text.
#[tokio::test]
async fn a_resource_is_spelled_as_the_document_spells_it() {
    // (the path of the endpoint, what is taken off its URL, what is put there)
    for (path, off, on) in [("/", "/", ""), ("/MCP/", "/", ""), ("/MCP/", "", ""), ("/mcp", "/mcp", "/")] {
        let document = move |document: &mut Value| {
            let url = document["resource"].as_str().unwrap().to_owned();
            document["resource"] = format!("{}{on}", url.strip_suffix(off).unwrap()).into();
        };
        let place = Place::with(|a| a, |e| e.path(path).prm_document(document)).await;
        place.login(&[]).await;
        place.serves().await;
        let expected = format!("{}{on}", place.url().strip_suffix(off).unwrap());
        assert_eq!(place.authority.requests_of("/authorize")[0].query["resource"], expected);
        assert_eq!(place.record()["resource"], expected);
        place.finish();
    }
}

#[tokio::test]
async fn a_url_with_a_query_is_its_own_resource() {
    let place = Place::with(|a| a, |e| e.query("team=a%20b&x=1")).await;
    place.login(&[]).await;
    place.serves().await;
    assert_eq!(place.authority.requests_of("/authorize")[0].query["resource"], place.url());
    place.finish();
}

#[tokio::test]
async fn without_s256_nobody_signs_in() {
    for methods in [Value::Null, json!([]), json!(["plain"]), json!("S256"), json!(["s256"])] {
        let place = Place::with(
            move |authority| {
                authority.metadata(move |document| {
                    let members = document.as_object_mut().unwrap();
                    members.remove("code_challenge_methods_supported");
                    if !methods.is_null() {
                        members.insert("code_challenge_methods_supported".into(), methods.clone());
                    }
                })
            },
            same,
        )
        .await;
        let document = format!("{}{METADATA}", place.authority.issuer());
        place.no_login(&[], &["code_challenge_methods_supported", "S256", &document, "operator"]).await;
        place.finish();
    }
    let place = Place::with(
        |authority| {
            authority.metadata_at(MetadataPlace::OpenIdInserted).metadata(|document| {
                document["code_challenge_methods_supported"] = json!(["plain", "S256"]);
            })
        },
        same,
    )
    .await;
    place.login(&[]).await;
    place.finish();
}

/// Two servers, of which the endpoint takes the tokens.
struct Two {
    first: Authority,
    second: Authority,
    endpoint: Endpoint,
    folder: ConfigDir,
}

impl Two {
    async fn new() -> Self {
        let first = Authority::builder().start().await;
        let second = Authority::builder().start().await;
        let endpoint = Endpoint::modern().protected_by(&first).protected_by(&second).start().await;
        Two { first, second, endpoint, folder: ConfigDir::new() }
    }

    fn login(&self) -> crate::support::OneShot {
        let launch = crate::support::Harness::launch(&self.endpoint.url()).config_dir(self.folder.path());
        launch.args(&["--login", "--no-browser"]).spawn()
    }

    async fn signs_in_at(&self, authority: &Authority) -> crate::support::Run {
        let mut login = self.login();
        let link = login.sign_in_link().await;
        assert!(link.starts_with(&authority.issuer()), "{link}");
        assert_eq!(authority.sign_in(&link).await.0, 200);
        login.finish().await
    }
}

#[tokio::test]
async fn of_several_servers_the_first_is_taken_and_said() {
    let two = Two::new().await;
    let run = two.signs_in_at(&two.first).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains(&format!("taken is \"{}\"", two.first.issuer())), "{}", run.stderr);
    assert!(two.second.requests().is_empty());
}

#[tokio::test]
async fn of_several_servers_the_one_of_the_stored_sign_in_is_taken() {
    let two = Two::new().await;
    two.folder.write(&[&SignIn::issued(&two.second, &two.endpoint.url(), "")]);
    let run = two.signs_in_at(&two.second).await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(two.first.requests().is_empty());
}

#[tokio::test]
async fn nobody_falls_back_to_another_server() {
    let mut two = Two::new().await;
    two.first.stop().await;
    let run = two.login().finish().await;
    assert_eq!(run.code, 77, "{}", run.stderr);
    assert!(run.stderr.contains(&two.first.issuer()), "{}", run.stderr);
    assert!(two.second.requests().is_empty());
}

#[tokio::test]
async fn the_bearer_challenge_is_found_among_others() {
    let others: [fn(String) -> Vec<String>; 4] = [
        |told| vec!["Basic realm=\"a, b\"".into(), "Negotiate".into(), told],
        |told| vec![format!("Basic realm=\"Bearer scope=\\\"x\\\"\", {told}")],
        |told| vec![format!("Negotiate YWJj==, {}", told.replace("Bearer", "bearer"))],
        |told| vec![told, "Bearer realm=\"second\", resource_metadata=\"http://127.0.0.1:1/x\"".into()],
    ];
    for challenge in others {
        // Only the pointer leads to the document.
        let place =
            Place::with(|a| a, |e| e.path("/a/mcp").prm(PrmPlace::Root).prm_absent(500).challenge(challenge));
        let place = place.await;
        place.login(&[]).await;
        place.finish();
    }
}

/// Documents are taken from where they are looked for, or not at all.
#[tokio::test]
async fn a_document_that_redirects_is_none() {
    let place = Place::new().await;
    let elsewhere = format!("{}/elsewhere", place.authority.issuer());
    place
        .authority
        .set(METADATA, move |_| (302, vec![("location".into(), elsewhere.clone())], String::new()));
    place.no_login(&[], &["redirect"]).await;
    assert!(place.authority.requests_of("/elsewhere").is_empty());
    place.finish();

    let authority = Authority::builder().start().await;
    authority.set("/elsewhere", |_| (307, vec![("location".into(), "/there".into())], String::new()));
    let issuer = authority.issuer();
    let pointer = move |_| vec![format!("Bearer resource_metadata=\"{issuer}/elsewhere\"")];
    let endpoint = Endpoint::modern().protected_by(&authority).challenge(pointer).start().await;
    let place = Place { authority, endpoint, folder: ConfigDir::new() };
    place.no_login(&[], &["redirect"]).await;
    assert!(place.authority.requests_of("/there").is_empty());
    place.finish();
}

#[tokio::test]
async fn a_document_that_is_too_large_or_none_is_not_used() {
    let bodies: [(&str, String, &str); 5] = [
        ("application/json", format!("{{\"x\":\"{}\"}}", "x".repeat(2_000_000)), "more than"),
        ("text/html", "<!doctype html>".into(), "not JSON"),
        ("application/json", "[]".into(), "not a JSON object"),
        ("application/json", "{\"issuer\":".into(), "not a JSON object"),
        ("application/json", "{}".into(), "issuer"),
    ];
    for (media, body, words) in bodies {
        let place = Place::new().await;
        let media = media.to_owned();
        place
            .authority
            .set(METADATA, move |_| (200, vec![("content-type".into(), media.clone())], body.clone()));
        place.no_login(&[], &[words]).await;
        place.finish();
    }
}

/// Servers that are in trouble are not passed over: their other documents may be somebody else's.
#[tokio::test]
async fn a_server_that_fails_is_not_passed_over() {
    let place = Place::new().await;
    place.authority.set(METADATA, |_| (503, vec![], String::new()));
    place.no_login(&[], &["503", "try again later"]).await;
    assert_eq!(place.authority.requests().len(), 1);
    place.finish();
}

/// Nothing is opened, sent or registered at an address that is no safe one (F12).
#[tokio::test]
async fn unsafe_addresses_in_metadata_are_refused() {
    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"] {
        for address in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-settings:",
            "http://as.example/x",
            "https://user:password@as.example/x",
            "https://as.example/x#y",
            "//as.example/x",
            "ftp://127.0.0.1/x",
            "",
        ] {
            let place = Place::with(
                move |authority| authority.metadata(move |document| document[name] = address.into()),
                same,
            )
            .await;
            place.no_login(&[], &[name]).await;
            place.finish();
        }
    }
}

#[tokio::test]
async fn an_endpoint_that_says_nothing_needs_the_issuer_from_the_user() {
    let place = Place::with(|a| a, |e| e.prm(PrmPlace::None)).await;
    place.no_login(&[], &["--issuer", "--token-file"]).await;
    let issuer = place.authority.issuer();
    place.login(&["--issuer", &issuer]).await;
    assert_eq!(place.record()["resource"], place.url());
    place.finish();
}

#[tokio::test]
async fn the_issuer_that_the_user_names_is_the_only_one() {
    let two = Two::new().await;
    let login = |issuer: String| {
        let launch = crate::support::Harness::launch(&two.endpoint.url()).config_dir(two.folder.path());
        launch.args(&["--login", "--no-browser", "--issuer", &issuer]).spawn()
    };
    let mut second = login(two.second.issuer());
    let link = second.sign_in_link().await;
    assert_eq!(two.second.sign_in(&link).await.0, 200);
    assert_eq!(second.finish().await.code, 0);
    assert!(two.first.requests().is_empty());

    let run = login("http://127.0.0.1:1".into()).finish().await;
    assert_eq!(run.code, 77, "{}", run.stderr);
    assert!(run.stderr.contains("--issuer allows \"http://127.0.0.1:1\" alone"), "{}", run.stderr);
}

#[tokio::test]
async fn the_resource_that_the_user_names_is_asked_for() {
    let place = Place::with(
        |a| a,
        |e| e.prm_document(|document| document["resource"] = "https://front.example/mcp".into()),
    )
    .await;
    place.no_login(&[], &["https://front.example/mcp"]).await;
    place.authority.protects("https://front.example/mcp");
    place.login(&["--resource", "https://front.example/mcp"]).await;
    assert_eq!(place.record()["resource"], "https://front.example/mcp");
    assert!(
        place
            .authority
            .requests_of("/token")
            .iter()
            .all(|r| r.form["resource"] == "https://front.example/mcp")
    );
    place.finish();
}
