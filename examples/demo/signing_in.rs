//! What is shown of signing in: once through the browser, then never again, until the user signs out.
//!
//! As in `story.rs`, the first thing that is not as it should be ends the demonstration.

use std::path::Path;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Result;
use crate::authority::{Authority, Count};
use crate::endpoint::{Endpoint, Seen};
use crate::harness::{Era, Harness, Message};
use crate::lighthouse::{self, Edition};
use crate::page::{Page, Way};
use crate::story::{at, call, unexpected, want};

/// The whole story of a sign-in.
pub(crate) async fn signing_in(
    page: &mut Page,
    endpoint: &mut Endpoint,
    program: &Path,
    config_dir: &Path,
) -> Result<()> {
    let authority = Authority::start(&endpoint.url).await?;
    endpoint.show(Edition::First, None);
    endpoint.protect(&authority);
    let mut stage = Stage { page, endpoint, program, config_dir, authority: &authority };
    let outcome = stage.all().await;
    outcome.map_err(|error| match authority.broken() {
        // what went wrong at the harness may have begun at the authorization server
        Some(rule) => format!("{error}; the authorization server refused {rule}").into(),
        None => error,
    })
}

struct Stage<'a> {
    page: &'a mut Page,
    endpoint: &'a mut Endpoint,
    program: &'a Path,
    config_dir: &'a Path,
    authority: &'a Authority,
}

impl Stage<'_> {
    async fn all(&mut self) -> Result<()> {
        self.page.line(format_args!(
            "        the endpoint now wants a token of the authorization server at {}",
            self.authority.issuer
        ));
        let harness = self.first_start().await.map_err(at("signing in"))?;
        self.renewal(harness).await.map_err(at("an expired token"))?;
        self.second_start().await.map_err(at("the second start"))?;
        self.sign_out().await.map_err(at("signing out"))
    }

    // === the steps ===

    /// Nobody is signed in: the user gets a link, and the harness waits no longer than it takes to follow it.
    async fn first_start(&mut self) -> Result<Harness> {
        // a window that opens by itself would be no good manners for a demonstration
        let mut harness = self.start(&["--no-browser"])?;
        let told = harness.told("open http").await?;
        let link = told.split_whitespace().find(|word| word.starts_with(&self.authority.issuer));
        let link =
            link.filter(|word| word.contains("/authorize?")).ok_or("there is no link to sign in with")?;
        self.page.said(Way::Warns, "the link to sign in with, opened in the browser otherwise");
        self.page.quoted(told.split('?').next().unwrap_or_default());

        let redirect = visit(link).await?;
        let back = redirect.location.ok_or("the authorization server did not send the browser back")?;
        let shown = visit(&back).await?;
        want(shown.text.contains("You are signed in"), || "the browser shows another page".to_owned())?;
        self.page.line("        a browser follows it, its user says yes, it comes back to 127.0.0.1");
        self.open(&mut harness).await?;
        self.look(&mut harness).await?;
        self.counted(Count { registrations: 1, sign_ins: 1, ..Count::default() })?;
        self.page
            .proven("signed in while the harness waits: registration, PKCE, state, issuer and resource held");
        self.kept()?;
        Ok(harness)
    }

    #[cfg(unix)]
    fn kept(&mut self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(self.config_dir.join("oauth.json"))?.permissions().mode() & 0o777;
        want(mode == 0o600, || format!("the sign-in is stored with mode {mode:o}"))?;
        self.page.proven("the tokens are in one file that nobody else may read (mode 0600)");
        Ok(())
    }

    #[cfg(not(unix))]
    fn kept(&mut self) -> Result<()> {
        want(self.config_dir.join("oauth.json").is_file(), || "the sign-in is not stored".to_owned())
    }

    async fn renewal(&mut self, mut harness: Harness) -> Result<()> {
        self.authority.expire();
        self.page.line("        the access token expires, before its time");
        self.look(&mut harness).await?;
        self.counted(Count { registrations: 1, sign_ins: 1, renewals: 1, ..Count::default() })?;
        self.left(harness).await?;
        self.page.proven("renewed in mid-session: both tokens are new, and the harness noticed nothing");
        Ok(())
    }

    async fn second_start(&mut self) -> Result<()> {
        let mut harness = self.start(&["--no-browser"])?;
        self.open(&mut harness).await?;
        self.look(&mut harness).await?;
        let words = self.left(harness).await?;
        want(!words.iter().any(|line| line.contains("/authorize?")), || {
            "mcp-hasp asked the user to sign in again".to_owned()
        })?;
        self.page.proven("another start, on another day, needs no browser");
        Ok(())
    }

    async fn sign_out(&mut self) -> Result<()> {
        let ended = self.start(&["--logout"])?.outlive().await?;
        want(ended.status.success(), || {
            format!("mcp-hasp ended with {}: {}", ended.status, ended.words.join(" "))
        })?;
        want(!self.authority.has_tokens(), || "a token is still good".to_owned())?;
        self.counted(Count { registrations: 1, sign_ins: 1, renewals: 1, revocations: 2 })?;
        self.page.proven("signed out: both tokens are revoked, and forgotten here");
        Ok(())
    }

    // === what the steps are made of ===

    fn start(&mut self, further: &[&str]) -> Result<Harness> {
        self.page.said(Way::Asks, format_args!("(starts mcp-hasp --url … {})", further.join(" ")));
        Harness::start(Era::Modern, self.program, &self.endpoint.url, self.config_dir, further)
    }

    async fn open(&mut self, harness: &mut Harness) -> Result<()> {
        let id = harness.request("server/discover", json!({})).await?;
        let message = harness.next().await?;
        let fits = match &message {
            Message::Result { id: theirs, result, .. } => {
                *theirs == id && result["instructions"] == lighthouse::INSTRUCTIONS
            }
            _ => false,
        };
        want(fits, || unexpected(&message))?;
        self.page.said(Way::Tells, "the endpoint's instructions");
        self.endpoint.noted();
        Ok(())
    }

    async fn look(&mut self, harness: &mut Harness) -> Result<()> {
        let id = harness.request("tools/call", call("look", json!({}))).await?;
        let message = harness.next().await?;
        want(
            matches!(&message, Message::Result { id: theirs, line, .. } if *theirs == id && line.contains(lighthouse::VIEW)),
            || unexpected(&message),
        )?;
        let arrived = self.endpoint.noted();
        let once = matches!(arrived.as_slice(), [entry] if matches!(&entry.seen, Seen::Arrived(what) if what == "tools/call look"));
        want(once, || "the call did not come to the endpoint once".to_owned())?;
        self.page.said(Way::Through, "tools/call look, with the token");
        self.page.said(Way::Back, lighthouse::VIEW);
        Ok(())
    }

    async fn left(&mut self, harness: Harness) -> Result<Vec<String>> {
        let ended = harness.leave().await?;
        want(ended.status.success(), || {
            format!("mcp-hasp ended with {}: {}", ended.status, ended.words.join(" "))
        })?;
        Ok(ended.words)
    }

    fn counted(&self, expected: Count) -> Result<()> {
        let count = self.authority.count();
        want(count == expected, || format!("the authorization server counts {count:?}"))
    }
}

/// What a browser got.
struct Visited {
    location: Option<String>,
    text: String,
}

/// The browser, as far as it takes part: it asks for one page of 127.0.0.1 and reads what comes.
#[allow(clippy::disallowed_methods, reason = "this program is no MCP server: here it plays the browser")]
async fn visit(url: &str) -> Result<Visited> {
    let url = url::Url::parse(url)?;
    let address = format!("127.0.0.1:{}", url.port().ok_or("the link names no port")?);
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut socket = TcpStream::connect(&address).await?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    socket.read_to_string(&mut text).await?;
    let location = text.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    Ok(Visited { location, text })
}
