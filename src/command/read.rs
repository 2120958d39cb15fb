//! The way to the endpoint, and its surface read once without serving it.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Config;
use crate::endpoint::opening::open;
use crate::endpoint::{Fixed, Http, Opened, Patience, SignInTrouble, TokenSource, Trouble};
use crate::failure::Failure;
use crate::net::Client;
use crate::report::{Report, visible};
use crate::signin::Keeper;
use crate::store::Store;
use crate::surface::lockfile::SignIn;
use crate::surface::{Authorization, Observed, Seal, Unverified};
use crate::wire;

/// How long the endpoint may take to have its session back.
const CLOSING: Duration = Duration::from_secs(2);
/// How long what must not be broken off may take at the end.
pub(super) const SETTLING: Duration = Duration::from_secs(5);

/// The one way to the endpoint, and the sign-in that it is gone with, if there may be one.
pub(super) struct Way {
    pub(super) http: Arc<Http>,
    pub(super) keeper: Option<Keeper>,
    has_token: bool,
}

impl Way {
    /// Once `seal` is closed nothing is sent any more.
    pub(super) fn new(config: &Config, seal: &Arc<Seal>, report: &Report) -> Result<Self, Failure> {
        let keeper = config.sign_in.as_ref().map(|sign_in| {
            let store = Store::new(sign_in.folder.clone(), report.clone());
            let options = sign_in.options.clone();
            Keeper::new(config.url.clone(), store, options, &sign_in.login, report.clone())
        });
        if let Some(keeper) = &keeper {
            names_its_issuer(config, keeper)?;
        }
        let tokens: Arc<dyn TokenSource> = match &keeper {
            Some(keeper) => Arc::new(keeper.clone()),
            None => Arc::new(Fixed(config.token.clone())),
        };
        Ok(Way { http: http(config, tokens, seal, report)?, keeper, has_token: config.token.is_some() })
    }

    /// With what a surface is read now.
    pub(super) fn authorization(&self) -> Authorization {
        if self.has_token {
            return Authorization::Token;
        }
        let stored = self.keeper.as_ref().and_then(|keeper| keeper.record().ok().flatten());
        match stored.filter(|record| record.tokens.is_some()) {
            None => Authorization::None,
            Some(record) => {
                Authorization::SignIn(SignIn { issuer: record.issuer, scopes: record.granted, account: None })
            }
        }
    }
}

/// The endpoint names where a client secret would be sent, so at first the user has to name it too.
fn names_its_issuer(config: &Config, keeper: &Keeper) -> Result<(), Failure> {
    let Some(sign_in) = &config.sign_in else { return Ok(()) };
    let options = &sign_in.options;
    if options.client_secret.is_none() || options.issuer.is_some() || config.url.is_loopback() {
        return Ok(());
    }
    match keeper.record() {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(Failure::Usage(
            "--client-secret-file needs --issuer at a first sign-in, for it is the endpoint that would name where the secret is sent".into(),
        )),
        Err(problem) => Err(Failure::SignIn(SignInTrouble::Store, problem.why)),
    }
}

fn http(
    config: &Config,
    tokens: Arc<dyn TokenSource>,
    seal: &Arc<Seal>,
    report: &Report,
) -> Result<Arc<Http>, Failure> {
    config.secrets().iter().for_each(|secret| report.conceal(secret));
    let client = Client::new(&config.url, config.extra_roots.clone())
        .map_err(|error| Failure::TrustRoots(visible(&error.to_string(), 200)))?;
    Ok(Arc::new(Http::new(
        client,
        config.url.clone(),
        &config.headers,
        tokens,
        config.limits.message_bytes,
        Arc::clone(seal),
        report.clone(),
    )))
}

/// Reads the surface, and notes with what it was read.
pub(super) async fn surface(config: &mut Config, report: &Report) -> Result<Observed, Failure> {
    let way = Way::new(config, &Arc::default(), report)?;
    let opened = opened(config, &way, report).await;
    if let Some(keeper) = &way.keeper {
        keeper.settle(SETTLING).await;
    }
    config.pin.authorization = way.authorization();
    opened.map(|opened| opened.observed).map_err(|trouble| opening(config, trouble))
}

/// Whether the endpoint lets itself be opened without a token.
pub(super) async fn probe(config: &Config, report: &Report) -> Result<(), Trouble> {
    let tokens = Arc::new(Fixed(None));
    let http = http(config, tokens, &Arc::default(), report)
        .map_err(|failure| Trouble::Unreachable(failure.to_string()))?;
    opened(config, &Way { http, keeper: None, has_token: false }, report).await.map(drop)
}

async fn opened(config: &Config, way: &Way, report: &Report) -> Result<Opened, Trouble> {
    let nobody = async { wire::Client::default() };
    let http = Arc::clone(&way.http);
    let opened = open(http, nobody, &config.limits, Patience::Start, report, &|_| {}).await?;
    opened.session.close(CLOSING).await;
    Ok(opened)
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
