//! Signing in ahead of time, signing out, and what is stored.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};

use super::read::{self, Way};
use super::{inspect, serve};
use crate::cli::Cli;
use crate::config::{self, Config};
use crate::endpoint::{Challenge, Trouble};
use crate::failure::{Exit, Failure};
use crate::report::{Report, visible};
use crate::signin::{Problem, ending};
use crate::store::{Record, Store};

/// Signs in, whatever is stored.
pub(super) async fn login(config: Config, report: Report) -> Result<Exit, Failure> {
    let way = Way::new(&config, &Arc::default(), &report)?;
    let Some(keeper) = &way.keeper else { return Err(Failure::Usage("--login needs a config dir".into())) };
    // What the endpoint asks for, it says where there is no token.
    let challenge = match read::probe(&config, &report).await {
        Ok(()) => Challenge::default(),
        Err(Trouble::SignInRequired { challenge, .. }) => *challenge,
        Err(trouble) => return Err(Failure::Opening(Box::new((config.url, trouble)))),
    };
    // What is there is held against what comes.
    keeper.record().map_err(failure)?;
    let outcome = tokio::select! {
        outcome = keeper.ask(challenge) => outcome.map_err(failure).map(|()| Exit::Done),
        () = serve::stop_signal() => Ok(Exit::Interrupted),
    };
    keeper.settle(read::SETTLING).await;
    if let (Ok(Exit::Done), Some(sign_in)) = (&outcome, &config.sign_in) {
        let path = Store::new(sign_in.folder.clone(), report.clone()).path();
        report.prompt(format!("signed in to {}; the sign-in is stored in {}", config.url, path.display()));
    }
    outcome
}

/// Signs out.
pub(super) async fn logout(config: Config, report: Report) -> Result<Exit, Failure> {
    config.secrets().iter().for_each(|secret| report.conceal(secret));
    let Some(sign_in) = &config.sign_in else {
        return Err(Failure::Usage("--logout needs a config dir".into()));
    };
    let store = Store::new(sign_in.folder.clone(), report.clone());
    let was_there =
        ending::sign_out(&config.url, &store, &sign_in.options, &report).await.map_err(failure)?;
    report.info(match was_there {
        true => format!("signed out of {}", config.url),
        false => format!("there is no sign-in for {}", config.url),
    });
    Ok(Exit::Done)
}

/// Lists what is stored, a line each.
///
/// # Errors
/// The store cannot be read.
pub fn status(
    cli: &Cli,
    environment: &dyn Fn(&str) -> Option<String>,
    report: &Report,
) -> Result<Exit, Failure> {
    let store = Store::new(config::status_folder(cli, environment)?, report.clone());
    let all = store.all().map_err(|problem| failure(problem.into()))?;
    if all.is_empty() {
        report.info(format!("no sign-in is stored in {}", store.path().display()));
    }
    let now = Utc::now();
    let lines: String = all.iter().map(|(url, record)| line(url, record, now) + "\n").collect();
    inspect::print(&lines).map_err(|why| Failure::Store(format!("stdout cannot be written: {why}")))?;
    Ok(Exit::Done)
}

/// A query may hold a secret.
fn line(url: &str, record: &Record, now: DateTime<Utc>) -> String {
    let (shown, query) = url.split_once('?').map_or((url, ""), |(shown, _)| (shown, "?…"));
    format!("{}{query}  issuer {}  {}", visible(shown, 300), visible(&record.issuer, 300), state(record, now))
}

fn state(record: &Record, now: DateTime<Utc>) -> String {
    let Some(tokens) = &record.tokens else { return "ended: sign in again with --login".into() };
    let end = tokens.expires_at.and_then(|end| DateTime::from_timestamp_millis(end.try_into().ok()?));
    let renewed = if tokens.refresh.is_some() { ", renewed by itself" } else { "" };
    match end {
        None => format!("no known expiry{renewed}"),
        Some(end) => {
            let verb = if end <= now { "expired" } else { "expires" };
            format!("{verb} {}{renewed}", end.to_rfc3339_opts(SecondsFormat::Secs, true))
        }
    }
}

fn failure(problem: Problem) -> Failure {
    Failure::SignIn(problem.kind, problem.why)
}
