//! Which rooms are wired for which command.

mod inspect;
mod lock;
pub mod login;
mod read;
pub mod serve;

use crate::config::{Config, Mode};
use crate::failure::{Exit, Failure};
use crate::report::Report;

/// Does what the command line asks for.
///
/// # Errors
/// It could not be done.
pub async fn run(config: Config, report: Report) -> Result<Exit, Failure> {
    match config.mode {
        Mode::Serve => serve::serve(config, report).await,
        Mode::WriteLock => lock::write(config, report).await,
        Mode::Login => login::login(config, report).await,
        Mode::Logout => login::logout(config, report).await,
        Mode::Inspect { json } => inspect::inspect(config, report, json).await,
    }
}
