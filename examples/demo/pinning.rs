//! What is shown of pinning: a surface that somebody agreed to is served, another one is not, neither at a start
//! nor in mid-session.
//!
//! As in `story.rs`, the first thing that is not as it should be ends the demonstration.

use std::path::Path;

use serde_json::json;

use crate::Result;
use crate::endpoint::{Endpoint, Seen};
use crate::harness::{self, Ended, Era, Harness, Message};
use crate::lighthouse::{self, Edition};
use crate::page::{Page, Way};
use crate::story::{at, call, unexpected, want};

/// Whether locks are shown too: from the day on which `src/surface/lockfile.rs` and `src/store/` can write one.
const LOCKS: bool = true;

/// The whole story of pinning.
pub(crate) async fn pinning(
    page: &mut Page,
    endpoint: &mut Endpoint,
    program: &Path,
    config_dir: &Path,
) -> Result<()> {
    let mut stage = Stage { page, endpoint, program, config_dir };
    let hash = stage.first_start().await.map_err(at("the first start"))?;
    stage.pinned_start(&hash).await.map_err(at("a pinned start"))?;
    stage.changed_start(&hash).await.map_err(at("a start after a change"))?;
    if LOCKS {
        stage.lock().await.map_err(at("a lock"))?;
    }
    stage.sealed_session().await.map_err(at("a change in mid-session"))
}

struct Stage<'a> {
    page: &'a mut Page,
    endpoint: &'a mut Endpoint,
    program: &'a Path,
    config_dir: &'a Path,
}

impl Stage<'_> {
    // === the steps ===

    /// Nothing is agreed to yet: mcp-hasp says what it sees, and how to pin it.
    async fn first_start(&mut self) -> Result<String> {
        let mut harness = self.start(&[])?;
        self.open(&mut harness).await?;
        let Ended { status, words } = harness.leave().await?;
        want(status.success(), || format!("mcp-hasp ended with {status}"))?;
        let told = words.iter().find(|line| line.contains("--expect-hash")).ok_or("no hash was printed")?;
        let hash = told.split_whitespace().find(|word| word.starts_with(COMPUTED));
        let hash = hash.map(|word| word.trim_end_matches([',', ';']).to_owned());
        let hash = hash.ok_or_else(|| format!("there is no hash in: {told}"))?;
        self.page.said(Way::Warns, "the hash of the surface");
        self.page.quoted(told);
        self.page.proven("the first start prints the hash of the surface, and the flag that pins it");
        Ok(hash)
    }

    async fn pinned_start(&mut self, hash: &str) -> Result<()> {
        let mut harness = self.start(&["--expect-hash", hash])?;
        self.open(&mut harness).await?;
        self.look(&mut harness).await?;
        let Ended { status, .. } = harness.leave().await?;
        want(status.success(), || format!("mcp-hasp ended with {status}"))?;
        self.page.proven("a start with that hash serves as before");
        Ok(())
    }

    async fn changed_start(&mut self, hash: &str) -> Result<()> {
        self.change();
        let ended = self.start(&["--expect-hash", hash])?.outlive().await?;
        self.read_whole()?;
        self.refused(ended, &[hash])?;
        self.page.proven("the start is refused with exit code 2, without a word to the harness");
        Ok(())
    }

    /// The same with a lock, which remembers the items: the difference is told, not just the fact.
    async fn lock(&mut self) -> Result<()> {
        self.endpoint.show(Edition::First, None);
        let file = self.config_dir.join("lighthouse.lock.json");
        let file = file.to_str().ok_or("the name of the temporary folder is not text")?;
        let Ended { status, words } = self.start(&["--write-lock", "--lock", file])?.outlive().await?;
        want(status.success(), || format!("mcp-hasp ended with {status}: {}", words.join(" ")))?;
        self.read_whole()?;
        want(Path::new(file).is_file(), || "no lock was written".to_owned())?;
        self.page.proven("the lock is a JSON file, to be reviewed and committed");

        let mut harness = self.start(&["--lock", file])?;
        self.open(&mut harness).await?;
        let Ended { status, .. } = harness.leave().await?;
        want(status.success(), || format!("mcp-hasp ended with {status}"))?;

        self.change();
        let ended = self.start(&["--lock", file])?.outlive().await?;
        self.read_whole()?;
        self.refused(ended, &["look", "description", "letters"])?;
        self.page.proven("the lock tells what changed: one description, before and after");
        Ok(())
    }

    /// The endpoint declares a hash of its own, and another one all of a sudden.
    async fn sealed_session(&mut self) -> Result<()> {
        self.endpoint.show(Edition::First, Some(DECLARED[0]));
        let mut harness = self.start(&[])?;
        self.open(&mut harness).await?;
        self.look(&mut harness).await?;
        self.page.proven(format_args!("the endpoint declares {}, and each result carries it", DECLARED[0]));

        self.endpoint.show(Edition::First, Some(DECLARED[1]));
        let id = harness.request("tools/call", call("look", json!({}))).await?;
        let why = self.sealed(harness.next().await?, id)?;
        let arrived = self.arrivals()?;
        want(arrived == ["tools/call look"], || format!("the endpoint saw {arrived:?}"))?;
        self.page.said(Way::Through, "tools/call look");
        self.page.said(Way::Tells, "surface_changed");
        self.page.quoted(&why);
        self.page.proven(format_args!("the result came with {}: it is withheld", DECLARED[1]));

        let id = harness.request("resources/read", json!({"uri": lighthouse::LOG_URI})).await?;
        self.page.said(Way::Asks, format_args!("resources/read {}", lighthouse::LOG_URI));
        self.sealed(harness.next().await?, id)?;
        self.page.said(Way::Tells, "surface_changed");
        let ended = harness.leave().await?;
        let arrived = self.arrivals()?;
        want(arrived.is_empty(), || format!("the endpoint still saw {arrived:?}"))?;
        self.page.proven("the session is sealed: nothing is sent to the endpoint any more");

        self.refused(ended, &DECLARED)?;
        self.page.proven("mcp-hasp left with exit code 2");
        Ok(())
    }

    // === what the steps are made of ===

    fn start(&mut self, further: &[&str]) -> Result<Harness> {
        let shown: Vec<_> = further.iter().map(|text| shortened(text)).collect();
        let shown = [" ", &shown.join(" ")].concat();
        self.page.said(Way::Asks, format_args!("(starts mcp-hasp --url …{})", shown.trim_end()));
        Harness::start(Era::Legacy, self.program, &self.endpoint.url, self.config_dir, further)
    }

    fn change(&mut self) {
        self.endpoint.show(Edition::Changed, None);
        self.page.line("        the endpoint now describes one of its tools in other words");
    }

    async fn open(&mut self, harness: &mut Harness) -> Result<()> {
        let params = json!({
            "protocolVersion": harness.era.version(),
            "capabilities": harness::client_capabilities(),
            "clientInfo": harness::client_info(),
        });
        let id = harness.request("initialize", params).await?;
        let result = match harness.next().await? {
            Message::Result { id: theirs, result, .. } if theirs == id => result,
            other => return Err(unexpected(&other).into()),
        };
        want(result["instructions"] == lighthouse::INSTRUCTIONS, || {
            format!("these are not the endpoint's instructions: {result}")
        })?;
        harness.notify("notifications/initialized", json!({})).await?;
        self.read_whole()
    }

    async fn look(&mut self, harness: &mut Harness) -> Result<()> {
        let id = harness.request("tools/call", call("look", json!({}))).await?;
        let message = harness.next().await?;
        want(
            matches!(&message, Message::Result { id: theirs, line, .. } if *theirs == id && line.contains(lighthouse::VIEW)),
            || unexpected(&message),
        )?;
        let arrived = self.arrivals()?;
        want(arrived == ["tools/call look"], || format!("the endpoint saw {arrived:?}"))?;
        self.page.said(Way::Through, "tools/call look");
        self.page.said(Way::Back, lighthouse::VIEW);
        Ok(())
    }

    /// What came to the endpoint has to be the reading of its surface, page by page.
    fn read_whole(&mut self) -> Result<()> {
        let arrived = self.arrivals()?;
        let only_read = arrived.iter().all(|what| what == "server/discover" || what.ends_with("/list"));
        want(only_read && !arrived.is_empty(), || format!("the endpoint saw {arrived:?}"))?;
        self.page.said(Way::Reads, format_args!("the whole surface, in {} requests", arrived.len()));
        Ok(())
    }

    /// What came to the endpoint since the last look.
    fn arrivals(&mut self) -> Result<Vec<String>> {
        let seen = self.endpoint.noted().into_iter().map(|entry| match entry.seen {
            Seen::Arrived(what) => Ok(what),
            Seen::Cancelled(what) => Err(format!("{what} was given up unasked").into()),
            Seen::Refused(why) => Err(format!("the endpoint refused a request: {why}").into()),
        });
        seen.collect()
    }

    /// The answer has to be the error of a sealed session. Returns what it says.
    fn sealed(&self, message: Message, id: i64) -> Result<String> {
        let error = match message {
            Message::Error { id: theirs, error } if theirs == id => error,
            other => return Err(unexpected(&other).into()),
        };
        want(error["data"]["reason"] == "surface_changed", || format!("this is another error: {error}"))?;
        Ok(error["message"].as_str().unwrap_or_default().to_owned())
    }

    /// The end has to be that of a surface that is not the pinned one, and stderr has to name all of this.
    fn refused(&mut self, ended: Ended, named: &[&str]) -> Result<()> {
        let Ended { status, words } = ended;
        want(status.code() == Some(NOT_THE_PINNED_ONE), || {
            format!("mcp-hasp ended with {status}: {}", words.join(" "))
        })?;
        let why = words.iter().position(|line| line.contains("the surface is not the pinned one"));
        let why = why.and_then(|first| words.get(first..)).ok_or("mcp-hasp did not say why it ended")?;
        for name in named {
            want(why.iter().any(|line| line.contains(name)), || {
                format!("nothing was said of {name}: {}", why.join(" "))
            })?;
        }
        self.page.said(Way::Warns, "the surface is not the pinned one");
        why.iter().for_each(|line| self.page.quoted(line));
        Ok(())
    }
}

/// A hash or a path is too long for a margin.
fn shortened(text: &str) -> String {
    if text.starts_with(COMPUTED) {
        return text.chars().take(COMPUTED.len() + 8).chain(['…']).collect();
    }
    let file = Path::new(text).file_name().and_then(|name| name.to_str());
    file.unwrap_or(text).to_owned()
}

const COMPUTED: &str = "hasp1:sha256:";
const DECLARED: [&str; 2] = ["lighthouse-1", "lighthouse-2"];
const NOT_THE_PINNED_ONE: i32 = 2;
