//! A surface shown to a person or a program, and nothing served.

mod json;
mod text;

use std::cmp::Reverse;
use std::io::{ErrorKind, Write as _};

use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::report::Report;
use crate::surface::pin::PinnedLock;
use crate::surface::{Difference, ExpectedHash, Finding, Mismatch, Observed, Skills, Surface, findings};
use crate::wire::Era;

use super::read;

/// Prints the surface, and then says whether it is the pinned one.
pub(super) async fn inspect(mut config: Config, report: Report, as_json: bool) -> Result<Exit, Failure> {
    let observed = read::surface(&mut config, &report).await?;
    // What has no canonical form cannot be shown as what would be pinned.
    let surface = config.pin.surface(&observed).map_err(|why| read::unverified(&config, why))?;
    let checked = config.pin.check(&surface);
    let difference = checked.as_ref().err().map(|mismatch| mismatch.difference.clone()).unwrap_or_default();
    let sight = Sight::new(&config, &observed, &surface, &difference);
    let page = if as_json { json::page(&sight) } else { text::page(&sight) };
    print(&page).map_err(|why| Failure::Store(format!("stdout cannot be written: {why}")))?;
    match checked {
        Ok(()) => Ok(Exit::Done),
        // The page has the difference already.
        Err(mismatch) => {
            let mismatch = Mismatch { difference: Difference::default(), ..mismatch };
            Err(Failure::Surface(Box::new((config.url, mismatch))))
        }
    }
}

/// Everything that a page tells.
struct Sight<'a> {
    config: &'a Config,
    surface: &'a Surface,
    skills: Option<&'a Skills>,
    era: Era,
    /// The most serious first.
    findings: Vec<Finding>,
    /// From the lock, if there is one.
    difference: Option<(&'a PinnedLock, &'a Difference)>,
}

impl<'a> Sight<'a> {
    fn new(
        config: &'a Config,
        observed: &'a Observed,
        surface: &'a Surface,
        difference: &'a Difference,
    ) -> Self {
        let skills = observed.skills();
        let mut findings = findings(surface);
        let unusable = skills.into_iter().flat_map(Skills::refused);
        findings.extend(unusable.map(|(uri, why)| Finding::unusable_skill(uri, why)));
        findings.sort_by_key(|finding| Reverse(finding.weight()));
        let lock = config.pin.lock.as_ref();
        let difference = lock.map(|lock| (lock, difference));
        Sight { config, surface, skills, era: observed.era, findings, difference }
    }

    /// Why a skill is refused, if it is.
    fn refusal(&self, uri: &str) -> Option<&'a str> {
        self.skills?.refused().find(|(refused, _)| *refused == uri).map(|(_, why)| why)
    }
}

/// The text of an expected hash, and which hash of the surface it is for.
fn described(expected: &ExpectedHash) -> (String, &'static str) {
    match expected {
        ExpectedHash::Computed(hash) => (hash.to_string(), "computed"),
        ExpectedHash::Declared(value) => (value.clone(), "declared"),
    }
}

/// Writes what the user asked to see. A reader that has seen enough is no error.
#[expect(clippy::disallowed_methods, reason = "no MCP is spoken here: stdout carries the page")]
pub(super) fn print(page: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(page.as_bytes()).and_then(|()| stdout.flush()) {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;
    use crate::surface::{Kind, List, Lock};

    fn observed(tool: &str) -> Observed {
        let mut list = List::new(Kind::Tools);
        list.add_page(Bytes::from(format!("{{\"tools\":[{tool}]}}"))).unwrap();
        Observed::new(Era::Modern, Bytes::from_static(b"{}"), [list])
    }

    /// Both pages of `now` with a lock that records `before`.
    fn pages(before: &str, now: &str) -> (String, serde_json::Value) {
        let line = ["mcp-hasp", "--url", "https://a.example/mcp", "--inspect"];
        let mut config = Config::new(Cli::try_parse_from(line).unwrap(), &|_| None).unwrap();
        let lock = Lock {
            url: config.url.to_string(),
            written: String::new(),
            authorization: config.pin.authorization.clone(),
            surface: Surface::of(&observed(before)).unwrap(),
        };
        config.pin.lock = Some(PinnedLock { file: "hasp\u{1b}.lock".into(), lock });
        let observed = observed(now);
        let surface = Surface::of(&observed).unwrap();
        let difference = config.pin.check(&surface).err().map(|found| found.difference).unwrap_or_default();
        let sight = Sight::new(&config, &observed, &surface, &difference);
        (text::page(&sight), serde_json::from_str(&json::page(&sight)).unwrap())
    }

    #[test]
    fn the_difference_from_a_lock_is_shown() {
        let (text, json) =
            pages(r#"{"name":"a","description":"Old."}"#, r#"{"name":"a","description":"New.\u202e"}"#);
        assert!(
            text.contains("DOES NOT MATCH: what is different from the lock hasp\\u{1b}.lock\n"),
            "{text}"
        );
        assert!(text.contains("~ tool \"a\"") && text.contains("- \"Old.\""), "{text}");
        assert!(text.contains("+ \"New.\\u{202e}\""), "{text}");
        assert_eq!(json["difference"][0]["members"][0]["new"], "New.\u{202e}");
        assert_eq!(json["lock"], "hasp\u{1b}.lock");
    }

    #[test]
    fn a_lock_that_matches_is_named() {
        let (text, json) = pages(r#"{"name":"a"}"#, r#"{ "name":"a" }"#);
        assert!(text.contains("matches: the surface is the same as in the lock hasp"), "{text}");
        assert_eq!(json["difference"], serde_json::json!([]));
    }
}
