//! The proxy: stdio on one side, the endpoint on the other.

use std::sync::Arc;

use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::relay::{self, Ending, NotOpened};
use crate::report::{Report, quoted};
use crate::surface::Seal;

use super::{lock, read};

/// Runs the proxy until the harness leaves.
///
/// # Errors
/// The endpoint could not be opened at start, or the trust roots are unusable.
pub async fn serve(config: Config, report: Report) -> Result<Exit, Failure> {
    let seal = Arc::<Seal>::default();
    let way = Arc::new(read::Way::new(&config, &seal, &report)?);
    report.info(format!("forwarding to {}", config.url));
    if config.channel.is_some() {
        report.info("channel: start Claude Code with --dangerously-load-development-channels server:NAME, the name that it knows this server by; a session that is started otherwise drops every event without a word");
    }
    let accept = accept(&config, Arc::clone(&way), report.clone());
    let authorization = Arc::clone(&way);
    let authorization = Box::new(move || authorization.authorization());
    let http = Arc::clone(&way.http);
    let endpoint = relay::Endpoint { http, seal, pin: config.pin, authorization, channel: config.channel };
    let pipes = rmcp::transport::stdio_pipes();
    let ending =
        relay::run(endpoint, accept, config.limits, config.allow, report, pipes, stop_signal()).await;
    // What was spent is stored, also where the harness leaves just then.
    if let Some(keeper) = &way.keeper {
        keeper.settle(read::SETTLING).await;
    }
    match ending {
        Ok(Ending::HarnessLeft) => Ok(Exit::Done),
        Ok(Ending::Stopped) => Ok(Exit::Interrupted),
        Ok(Ending::Sealed) => Ok(Exit::Surface),
        Err(NotOpened::Trouble(trouble)) => Err(Failure::Opening(Box::new((config.url, trouble)))),
        Err(NotOpened::Mismatch(mismatch)) => Err(Failure::Surface(Box::new((config.url, *mismatch)))),
        Err(NotOpened::Unrecorded(why)) => Err(Failure::Store(why)),
    }
}

/// Says at the start what is pinned and by which means, and writes an automatic lock at first use.
fn accept(config: &Config, way: Arc<read::Way>, report: Report) -> relay::Accept {
    let means = config.pin.means();
    let to_write = config.lock.clone().filter(|place| place.automatic && config.pin.lock.is_none());
    let url = config.url.clone();
    Box::new(move |verified| {
        let surface = verified.surface();
        let declared = match &surface.declared {
            Some(hash) => format!("the endpoint declares {}", quoted(&hash.value, 120)),
            None => "the endpoint declares none".into(),
        };
        if !means.is_empty() {
            report.info(format!("the surface is the one pinned by {means}: {}, {declared}", surface.hash()));
        } else if to_write.is_none() {
            report.info(format!(
                "the surface seen now is pinned for this session, {declared}; to pin it for good add --expect-hash {} or --lock auto",
                surface.hash()
            ));
        }
        if let Some(place) = to_write {
            lock::record(&place, &url, way.authorization(), surface)?;
            report.info(format!(
                "first use: the surface {} ({declared}) is recorded in {} and enforced from now on; --write-lock accepts a change",
                surface.hash(),
                place.path.display()
            ));
        }
        Ok(())
    })
}

/// Resolves when a signal asks us to stop.
#[cfg(unix)]
pub(super) async fn stop_signal() {
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
pub(super) async fn stop_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
