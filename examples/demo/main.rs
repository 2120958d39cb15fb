//! mcp-hasp at work, in one command and a few seconds:
//!
//! ```text
//! cargo run --release --example demo
//! ```
//!
//! Three parties take part, as they do in earnest. The *harness* (played by `harness.rs`) starts the real
//! mcp-hasp as its child; mcp-hasp forwards to the *endpoint* (`endpoint.rs`, about a lighthouse that
//! `lighthouse.rs` describes). `story.rs`, `pinning.rs` and `signing_in.rs` are what happens between them, and check it;
//! `page.rs` prints it. A fourth party, the authorization server, is `authority.rs`.
//! Nothing leaves the machine, and nothing stays on it.

#![allow(
    clippy::indexing_slicing,
    reason = "`value[\"key\"]` of a serde_json::Value is null where nothing is"
)]

mod authority;
mod binary;
mod endpoint;
mod harness;
mod lighthouse;
mod page;
mod pinning;
mod server;
mod signing_in;
mod story;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::harness::Era;
use crate::page::Page;

/// What went wrong is a sentence for the reader; no part of the demonstration acts on its kind.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = tokio::select! {
        outcome = demonstrate() => outcome,
        _ = tokio::signal::ctrl_c() => {
            page::failure("interrupted");
            return ExitCode::from(130);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            page::failure(error);
            ExitCode::FAILURE
        }
    }
}

async fn demonstrate() -> Result<()> {
    let mut page = Page::new();
    page.line("mcp-hasp is started by a harness and forwards to one remote MCP endpoint. Watch it do so.\n");
    page.line("building mcp-hasp, if it is not built yet ...");
    let program = binary::mcp_hasp().await?;
    let mut endpoint = Endpoint::start().await?;
    let config_dir = tempfile::tempdir()?;

    page.line("");
    page.line("  harness   your agent (Claude Code, Codex, Cursor, ...), here played by this program");
    page.line("  mcp-hasp  the real one, a child process that the harness talks to over stdin and stdout");
    page.line(format_args!("  endpoint  a small MCP server of this program, at {}", endpoint.url));

    let started = Instant::now();
    for (number, era) in [(1, Era::Legacy), (2, Era::Modern)] {
        let title = match era {
            Era::Legacy => "a harness of the older kind, which opens with initialize",
            Era::Modern => "a harness of the newer kind, which opens with server/discover",
        };
        page.heading(&format!("{number}. {} - {title}", era.version()));
        let visit = story::visit(&mut page, &mut endpoint, era, &program, config_dir.path());
        tokio::time::timeout(VISIT_LIMIT, visit).await.map_err(|_| "the visit took too long")??;
    }

    page.heading("3. pinning - the surface that somebody agreed to, or none");
    let pinning = pinning::pinning(&mut page, &mut endpoint, &program, config_dir.path());
    tokio::time::timeout(VISIT_LIMIT, pinning).await.map_err(|_| "the pinning took too long")??;

    page.heading("4. signing in - once, and then kept");
    let signing_in = signing_in::signing_in(&mut page, &mut endpoint, &program, config_dir.path());
    tokio::time::timeout(VISIT_LIMIT, signing_in).await.map_err(|_| "the sign-in took too long")??;

    page.line(format_args!(
        "\nAll {} points hold; the whole visit took {:.1} s. For an endpoint of your own, with Claude Code:\n",
        page.count(),
        started.elapsed().as_secs_f64()
    ));
    page.line("    cargo install --path .");
    page.line("    claude mcp add NAME -- mcp-hasp --url https://your.endpoint/mcp\n");
    Ok(())
}

/// Each visit takes about three seconds.
const VISIT_LIMIT: Duration = Duration::from_secs(15);
