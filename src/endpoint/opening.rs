//! Opening the endpoint: find its era, agree on a revision, read its surface.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::exchange::Reply;
use super::http::Http;
use super::session::{OwnMethod, Session, Unsolicited, refused};
use super::survey;
use super::trouble::Trouble;
use crate::limits::Limits;
use crate::report::{Report, visible};
use crate::surface::Observed;
use crate::wire::{Client, Era, LEGACY_VERSIONS, MODERN_VERSION, Message, json, meta};

/// How an opening deals with trouble that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// At start: try a few times, wait as `Retry-After` says.
    Start,
    /// While requests wait for it: say at once what is wrong.
    None,
}

/// Pauses between attempts at start, where the endpoint names none.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(750), Duration::from_secs(2)];
/// How long a session may take to end that is of no use.
const GIVING_UP: Duration = Duration::from_secs(2);
/// The longest `Retry-After` that is honoured.
const LONGEST_RETRY_AFTER: u64 = 60;

/// An endpoint that was opened and read.
#[derive(Debug)]
pub struct Opened {
    /// The relation to it.
    pub session: Arc<Session>,
    /// What arrives without belonging to a request.
    pub unsolicited: mpsc::Receiver<Unsolicited>,
    /// What it offers.
    pub observed: Observed,
}

/// Opens the endpoint, at start with the user's sign-in where it asks for one. `client` yields what the harness can do; only a legacy endpoint has to know it now.
/// `begun` is told of each session before it is used, so that it can be given up whatever comes.
///
/// # Errors
/// It cannot be reached, does not speak MCP, or its surface cannot be read whole.
pub async fn open(
    http: Arc<Http>,
    client: impl Future<Output = Client>,
    limits: &Limits,
    patience: Patience,
    report: &Report,
    begun: &(dyn Fn(&Arc<Session>) + Sync),
) -> Result<Opened, Trouble> {
    tokio::pin!(client);
    let mut known = None;
    let mut may_ask = patience == Patience::Start;
    let mut may_be_replaced = true;
    loop {
        let client = async {
            let client = match known.take() {
                Some(client) => client,
                None => client.as_mut().await,
            };
            known.insert(client).clone()
        };
        // Boxed: it is large, and is not polled once a call.
        match Box::pin(open_once(&http, client, limits, patience, report, begun)).await {
            // The user is asked once: a sign-in that is refused at once would be refused again.
            Err(Trouble::SignInRequired { login: Some(_), challenge, .. }) if may_ask => {
                may_ask = false;
                http.sign_in(*challenge).await?;
            }
            // Somebody signed in elsewhere meanwhile: what was read so far was read with another sign-in.
            Err(Trouble::SessionLost) if may_be_replaced => may_be_replaced = false,
            opened => return opened,
        }
    }
}

async fn open_once(
    http: &Arc<Http>,
    client: impl Future<Output = Client>,
    limits: &Limits,
    patience: Patience,
    report: &Report,
    begun: &(dyn Fn(&Arc<Session>) + Sync),
) -> Result<Opened, Trouble> {
    let (modern, inbox) = Session::new(Arc::clone(http), Era::Modern, Client::default(), report.clone());
    begun(&modern);
    let opened = match discover(&modern, patience).await? {
        Some(result) => (modern, inbox, result),
        None => {
            report.verbose(|| "the endpoint is of the initialize era".into());
            initialize(Arc::clone(http), client.await, patience, report, begun).await?
        }
    };
    let (session, unsolicited, result) = opened;
    let opening = result.into_payload();
    match survey::read(&session, opening, limits, patience).await {
        Ok(mut observed) => {
            survey::learn_parameter_headers(&session, &mut observed, report);
            // Once is enough: opened again, it is the same or there is worse to say.
            if patience == Patience::Start {
                survey::warn_of_skills(&observed, report);
            }
            Ok(Opened { session, unsolicited, observed })
        }
        Err(trouble) => {
            session.close(GIVING_UP).await;
            Err(trouble)
        }
    }
}

/// Asks in modern form. `None` means: legacy (MCP 2026-07-28 "Versioning").
async fn discover(session: &Arc<Session>, patience: Patience) -> Result<Option<Message>, Trouble> {
    let ask = || async {
        match session.ask_raw(OwnMethod::Discover, "{}").await? {
            Reply::Trouble(trouble) if trouble.is_passing() => Err(trouble),
            reply => Ok(reply),
        }
    };
    let mut versions_refused = false;
    loop {
        match patiently(patience, ask).await? {
            Reply::Result(message) => {
                return match message.payload().get("supportedVersions") {
                    Some(versions) => choose(versions).map(|modern| modern.then_some(message)),
                    None => Ok(None),
                };
            }
            Reply::Error(message, _) => {
                let error = message.payload();
                match error.get("code") {
                    // A modern endpoint that does not like our request: falling back would hide the fault.
                    Some("-32020" | "-32021") => return Err(refused("server/discover", &message)),
                    Some("-32022") => {
                        let data = error.object("data").ok().flatten().unwrap_or_default();
                        if !choose(data.get("supported").unwrap_or("[]"))? {
                            return Ok(None);
                        }
                        // It refuses the revision that it says it supports: once more, then it is its own fault.
                        if std::mem::replace(&mut versions_refused, true) {
                            return Err(refused("server/discover", &message));
                        }
                    }
                    _ => return Ok(None),
                }
            }
            Reply::Trouble(
                Trouble::HttpStatus { status: 400..=499, .. }
                | Trouble::ContentType { .. }
                | Trouble::MalformedAnswer(_)
                | Trouble::NoAnswer { .. }
                | Trouble::WrongId
                | Trouble::SessionLost,
            ) => return Ok(None),
            Reply::Trouble(trouble) => return Err(trouble),
        }
    }
}

/// Whether our modern revision is among an endpoint's; `false` when only legacy ones are common.
fn choose(versions: &str) -> Result<bool, Trouble> {
    let listed = json::array_items(versions).unwrap_or_default();
    let has =
        |wanted: &str| listed.iter().any(|(text, _)| json::decode_string(text).as_deref() == Some(wanted));
    if has(MODERN_VERSION) {
        return Ok(true);
    }
    if LEGACY_VERSIONS.iter().any(|version| has(version)) {
        return Ok(false);
    }
    Err(Trouble::NotMcp(format!(
        "it speaks the revisions {}, this version none of them",
        visible(versions, 120)
    )))
}

type Agreed = (Arc<Session>, mpsc::Receiver<Unsolicited>, Message);

async fn initialize(
    http: Arc<Http>,
    client: Client,
    patience: Patience,
    report: &Report,
    begun: &(dyn Fn(&Arc<Session>) + Sync),
) -> Result<Agreed, Trouble> {
    let [newest, ..] = LEGACY_VERSIONS;
    let params = format!(
        r#"{{"protocolVersion":"{newest}","capabilities":{},"clientInfo":{}}}"#,
        client.to_json(),
        meta::OWN_INFO
    );
    let (session, inbox) = Session::new(http, Era::Legacy, client, report.clone());
    begun(&session);
    let result = match patiently(patience, || session.ask(OwnMethod::Initialize, &params)).await {
        Ok(result) => result,
        Err(Trouble::HttpStatus { status: status @ (400 | 404 | 405), .. }) => {
            return Err(Trouble::NotMcp(format!(
                "neither server/discover nor initialize is answered, HTTP {status}; HTTP+SSE of 2024-11-05 is not supported"
            )));
        }
        Err(trouble) => return Err(trouble),
    };
    let version = result.payload().string("protocolVersion").map(std::borrow::Cow::into_owned);
    match version {
        Some(version) if LEGACY_VERSIONS.contains(&version.as_str()) => session.agree(&version),
        Some(version) => {
            return Err(Trouble::NotMcp(format!("it chose the revision {}", visible(&version, 40))));
        }
        None => return Err(Trouble::NotMcp("its answer to initialize names no revision".into())),
    }
    session.notify("notifications/initialized", "{}").await;
    session.open_event_stream();
    Ok((session, inbox, result))
}

/// Tries again while the trouble may pass, as patient as it may be.
pub(super) async fn patiently<T, F, Fut>(patience: Patience, mut attempt: F) -> Result<T, Trouble>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Trouble>>,
{
    let mut pauses = PAUSES.into_iter();
    loop {
        let trouble = match attempt().await {
            Ok(value) => return Ok(value),
            Err(trouble) => trouble,
        };
        let pause = pauses.next().filter(|_| patience == Patience::Start && trouble.is_passing());
        let Some(pause) = pause else { return Err(trouble) };
        let asked =
            trouble.retry_after().map(|seconds| Duration::from_secs(seconds.min(LONGEST_RETRY_AFTER)));
        tokio::time::sleep(asked.unwrap_or(pause)).await;
    }
}
