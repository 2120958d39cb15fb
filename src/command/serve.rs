//! The proxy: stdio on one side, the endpoint on the other.

use std::sync::Arc;

use crate::config::Config;
use crate::endpoint::Http;
use crate::failure::{Exit, Failure};
use crate::net::Client;
use crate::relay::{self, Ending};
use crate::report::{Report, visible};

/// Runs the proxy until the harness leaves.
///
/// # Errors
/// The endpoint could not be opened at start, or the trust roots are unusable.
pub async fn serve(config: Config, report: Report) -> Result<Exit, Failure> {
    config.secrets().for_each(|secret| report.conceal(secret));
    let client = Client::new(&config.url, config.extra_roots)
        .map_err(|error| Failure::TrustRoots(visible(&error.to_string(), 200)))?;
    report.info(format!("forwarding to {}", config.url));
    let http = Http::new(
        client,
        config.url.clone(),
        &config.headers,
        config.token.as_ref(),
        config.limits.message_bytes,
        report.clone(),
    );
    let (input, output) = rmcp::transport::stdio_pipes();
    let ending =
        relay::run(Arc::new(http), config.limits, config.allow, report, input, output, stop_signal()).await;
    match ending {
        Ok(Ending::HarnessLeft) => Ok(Exit::Done),
        Ok(Ending::Stopped) => Ok(Exit::Interrupted),
        Err(trouble) => Err(Failure::Opening(Box::new((config.url, trouble)))),
    }
}

/// Resolves when a signal asks us to stop.
#[cfg(unix)]
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let wait = async |kind| match signal(kind) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::hangup()) => {}
    }
}

/// Resolves when Ctrl-C is pressed.
#[cfg(not(unix))]
async fn stop_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
