//! The way to the endpoint, and its surface read once without serving it.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::endpoint::opening::open;
use crate::endpoint::{Http, Patience, Trouble};
use crate::failure::Failure;
use crate::net::Client;
use crate::report::{Report, visible};
use crate::surface::{Observed, Seal, Unverified};
use crate::wire;

/// How long the endpoint may take to have its session back.
const CLOSING: Duration = Duration::from_secs(2);

/// The one way to the endpoint. Once `seal` is closed nothing is sent any more.
pub(super) fn way(config: &Config, seal: &Arc<Seal>, report: &Report) -> Result<Arc<Http>, Failure> {
    config.secrets().iter().for_each(|secret| report.conceal(secret));
    let client = Client::new(&config.url, config.extra_roots.clone())
        .map_err(|error| Failure::TrustRoots(visible(&error.to_string(), 200)))?;
    Ok(Arc::new(Http::new(
        client,
        config.url.clone(),
        &config.headers,
        config.token.as_ref(),
        config.limits.message_bytes,
        Arc::clone(seal),
        report.clone(),
    )))
}

/// Reads the surface.
pub(super) async fn surface(config: &Config, report: &Report) -> Result<Observed, Failure> {
    let http = way(config, &Arc::default(), report)?;
    let nobody = async { wire::Client::default() };
    let opened = open(http, nobody, &config.limits, Patience::Start, report, &|_| {}).await;
    let opened = opened.map_err(|trouble| opening(config, trouble))?;
    opened.session.close(CLOSING).await;
    Ok(opened.observed)
}

/// The surface is not the pinned one, or it cannot be told.
pub(super) fn unverified(config: &Config, why: Unverified) -> Failure {
    match why {
        Unverified::Unclear(why) => opening(config, Trouble::NotMcp(why)),
        Unverified::Mismatch(mismatch) => Failure::Surface(Box::new((config.url.clone(), *mismatch))),
    }
}

/// The endpoint did not let itself be opened.
fn opening(config: &Config, trouble: Trouble) -> Failure {
    Failure::Opening(Box::new((config.url.clone(), trouble)))
}
