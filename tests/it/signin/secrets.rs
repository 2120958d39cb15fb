//! Nothing secret is said or left lying about, whatever the servers repeat of it and however loud the program is.

use std::path::Path;

use super::{Place, works};
use crate::support::{AuthMethod, Era, Harness, Launch};

const CLIENT: &str = "given-client";
const CLIENT_SECRET: &str = "cl1ent \"s3cret\\+";

/// A server that repeats all it was sent in every error.
fn echo(
    form: &std::collections::BTreeMap<String, String>,
    status: u16,
    error: &str,
) -> (u16, Vec<(String, String)>, String) {
    let values = form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
    let long = format!("{}{values}", "x".repeat(150));
    let body = serde_json::json!({"error": error, "error_description": values, "long": long});
    (status, vec![("content-type".to_owned(), "application/json".to_owned())], body.to_string())
}

/// Everything of a run that somebody else may read.
struct Outside {
    text: String,
}

impl Outside {
    fn new() -> Self {
        Outside { text: String::new() }
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// What other users see of a process.
    fn add_process(&mut self, pid: u32) {
        for name in ["cmdline", "comm", "status"] {
            if let Ok(bytes) = std::fs::read(format!("/proc/{pid}/{name}")) {
                self.add(&String::from_utf8_lossy(&bytes));
            }
        }
    }

    /// Every file below a folder but those of the store itself.
    fn add_files(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            self.add(&name);
            if path.is_dir() {
                self.add_files(&path);
            } else if name != "oauth.json"
                && !(name.ends_with(".json") && path.parent().unwrap().ends_with("sign-ins"))
            {
                self.add(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
            }
        }
    }

    fn holds_none_of(&self, secrets: &[String]) {
        assert!(secrets.len() >= 7, "{secrets:?}");
        for secret in secrets {
            let in_a_form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            for spelling in [secret, &in_a_form, &secret[..secret.len() * 2 / 3]] {
                assert!(!self.text.contains(spelling), "{secret} ({spelling}) is in:\n{}", self.text);
            }
        }
    }
}

fn loud(place: &Place, args: &[&str]) -> Launch {
    place.launch().args(&["-vv"]).args(args)
}

/// All that the server was sent, and all that it sent.
fn secrets(place: &Place, stored: &[String]) -> Vec<String> {
    let mut secrets = vec![CLIENT_SECRET.to_owned()];
    for request in place.authority.requests() {
        for name in ["code", "code_verifier", "refresh_token", "token"] {
            secrets.extend(request.form.get(name).cloned());
        }
    }
    secrets.extend(stored.iter().cloned());
    secrets.sort();
    secrets.dedup();
    secrets
}

async fn a_bad_day(args: &[&str]) {
    let given = |authority: crate::support::AuthorityBuilder| {
        authority.client(CLIENT, Some(CLIENT_SECRET), AuthMethod::Post).allow("")
    };
    let place = Place::with(given, |endpoint| endpoint).await;
    let secret_file = place.folder.path().join("client-secret");
    std::fs::write(&secret_file, format!("{CLIENT_SECRET}\n")).unwrap();
    let mut args = args.to_vec();
    args.extend(["--client-id", CLIENT, "--client-secret-file", secret_file.to_str().unwrap()]);
    let (mut outside, mut stored) = (Outside::new(), Vec::new());
    let mut keep = |place: &Place| {
        let tokens = &place.record()["tokens"];
        stored.extend(
            ["access", "refresh"].iter().filter_map(|name| tokens[*name].as_str().map(str::to_owned)),
        );
    };

    // A code that is refused in every way, then one that is taken.
    for (status, error) in
        [(400, "invalid_grant"), (401, "invalid_client"), (400, "invalid_target"), (500, "x")]
    {
        place.authority.set_token_handler(move |form, _| Some(echo(form, status, error)));
        let mut login = loud(&place, &args).arg("--login").spawn();
        let link = login.sign_in_link().await;
        place.authority.sign_in(&link).await;
        let run = login.finish().await;
        assert_eq!(run.code, 77, "{}", run.stderr);
        outside.add(&run.stderr);
        outside.add(&run.stdout);
    }
    place.authority.set_token_handler(|_, _| None);
    let mut login = loud(&place, &args).arg("--login").spawn();
    let link = login.sign_in_link().await;
    let (_, page) = place.authority.sign_in(&link).await;
    outside.add(&page);
    let run = login.finish().await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    outside.add(&run.stderr);
    keep(&place);

    // Renewals that fail in every way.
    place.authority.expire_everything();
    for (status, error) in
        [(500, "x"), (400, "invalid_target"), (401, "invalid_client"), (400, "invalid_grant")]
    {
        place.folder.change_record(&place.url(), |record| {
            record["tokens"]["obtained_at"] = 0.into();
            record["tokens"]["expires_at"] = 1.into();
        });
        place.authority.set_token_handler(move |form, _| Some(echo(form, status, error)));
        let mut harness = loud(&place, &args).start();
        outside.add_process(harness.pid());
        // The last one ends the sign-in, and the user is asked.
        match error {
            "invalid_grant" => drop(harness.sign_in_link().await),
            _ => outside.add(&harness.open(Era::Legacy, "{}").await.text()),
        }
        harness.close_stdin();
        harness.wait_exit().await;
        outside.add(&harness.stderr_text());
        for line in harness.lines() {
            outside.add(&line.to_string());
        }
    }

    // A session in which the endpoint repeats the token, and signing out.
    place.authority.set_token_handler(|_, _| None);
    let mut login = loud(&place, &args).arg("--login").spawn();
    let link = login.sign_in_link().await;
    place.authority.sign_in(&link).await;
    outside.add(&login.finish().await.stderr);
    keep(&place);
    let mut harness = loud(&place, &args).start();
    works(&mut harness, Era::Modern).await;
    outside.add_process(harness.pid());
    outside.add_files(harness.home());
    place.endpoint.set("tools/call", |request| {
        let token = request.header("authorization").unwrap_or_default().to_owned();
        crate::support::Reply::status(401).with_header(
            "www-authenticate",
            &format!("Bearer error=\"invalid_token\", error_description=\"{token}\", scope=\"{token}\""),
        )
    });
    harness.call("echo", "{}").await;
    harness.close_stdin();
    harness.wait_exit().await;
    outside.add(&harness.stderr_text());
    keep(&place);
    place.authority.set("/revoke", |request| echo(&request.form, 503, "unavailable"));
    let run = loud(&place, &args).arg("--logout").run().await;
    assert_eq!(run.code, 0, "{}", run.stderr);
    outside.add(&run.stderr);
    let run = Harness::launch_bare().args(&["--status", "-vv"]).config_dir(place.folder.path()).run().await;
    outside.add(&run.stdout);

    std::fs::remove_file(&secret_file).unwrap();
    outside.add_files(place.folder.path());
    outside.holds_none_of(&secrets(&place, &stored));
    place.endpoint.take_violations();
    place.authority.take_violations();
}

#[tokio::test]
async fn nothing_secret_is_said() {
    a_bad_day(&[]).await;
}

#[tokio::test]
async fn nothing_secret_is_said_in_json() {
    a_bad_day(&["--log-format", "json"]).await;
}
