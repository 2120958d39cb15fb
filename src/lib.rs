//! mcp-hasp: a stdio MCP server that forwards to exactly one remote MCP endpoint, without trusting it blindly.
//!
//! The rooms, in the order a byte walks through them:
//!
//! - [`cli`] what was typed → [`config`] what it means, checked once → [`command`] which rooms are wired
//! - [`harness`] the stdio side: [`harness::stdin`] lines in, [`harness::stdout`] the one writer,
//!   [`harness::modern`] and [`harness::legacy`] what each era expects
//! - [`wire`] JSON-RPC as raw text: [`mod@wire::parse`] the one door for outside JSON, [`wire::meta`] the one editor
//! - [`relay`] between the sides: [`relay::opening`] opens, verifies and looks again, [`relay::route`] answer, refuse or
//!   forward, [`relay::crossing`] the only way over
//! - [`surface`] what of the endpoint can steer a model: [`surface::observed`] as it was read, [`surface::content`] in
//!   canonical form ([`surface::canon`]) with its [`surface::hash`], [`surface::pin`] the proof that it is the agreed one,
//!   [`surface::lockfile`] and [`surface::difference`] for people, [`mod@surface::findings`] what is easily missed;
//!   the [`surface::gate`] that lets requests out and answers in, and the [`surface::seal`] that ends both;
//!   [`surface::skill`] which skills can be used, [`surface::skill_file`] the proof that a file is the listed one
//! - [`endpoint`] the HTTPS side: [`endpoint::opening`] era and revision, [`endpoint::survey`] every list once,
//!   [`endpoint::http`] requests to the one URL, [`endpoint::sse`] events
//! - [`command`] also shows a surface (`--inspect`) and records it (`--write-lock`), where nothing is served
//! - [`signin`] OAuth: [`signin::keeper`] the token for each request, [`signin::asking`] the user asked once,
//!   [`signin::callback`] the one listening socket
//! - [`channel`] what may wake a session, and how it is told from an endpoint's statuses
//! - [`store`] files of this program, [`net`] the one HTTP client and the one URL, [`limits`] bounds and permissions,
//!   [`secret`] what must not be printed, [`report`] the one writer of stderr, [`failure`] every ending with its exit code
//!   and its words
//!
//! `SECURITY.md` names the home of each promise.

pub mod channel;
pub mod cli;
pub mod command;
pub mod config;
pub mod endpoint;
pub mod failure;
pub mod harness;
pub mod limits;
pub mod net;
pub mod relay;
pub mod report;
pub mod secret;
pub mod signin;
pub mod store;
pub mod surface;
pub mod wire;

use failure::{Exit, Failure};
use report::Report;

/// Runs a command line to its end. `environment` looks a variable up.
pub fn run(cli: cli::Cli, environment: &dyn Fn(&str) -> Option<String>) -> Exit {
    let (level, format) = config::level(&cli);
    let report = Report::start(level, format).coloured(report::may_colour(environment));
    if cli.status {
        let outcome = command::login::status(&cli, environment, &report);
        return end(outcome, &report);
    }
    let outcome = config::Config::new(cli, environment).and_then(|config| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
        let outcome = runtime.block_on(command::run(config, report.clone()));
        // A read of stdin that nobody cancels must not keep the process.
        runtime.shutdown_background();
        outcome
    });
    end(outcome, &report)
}

fn end(outcome: Result<Exit, Failure>, report: &Report) -> Exit {
    let exit = outcome.unwrap_or_else(|failure| {
        report.error(failure.to_string());
        report.rows(&failure.rows());
        failure.exit()
    });
    report.flush();
    exit
}
