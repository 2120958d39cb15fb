//! Signing out: the tokens are revoked as far as the server lets us (RFC 7009), and forgotten whatever it says.

use super::keeper::LOCKED;
use super::{Options, Problem, token_endpoint};
use crate::net::{EndpointUrl, Reach, Web};
use crate::report::Report;
use crate::store::{Record, Store};

/// Revokes and forgets the sign-in at an endpoint. Says whether there was one.
///
/// # Errors
/// The store cannot be read or written.
pub async fn sign_out(
    url: &EndpointUrl,
    store: &Store,
    options: &Options,
    report: &Report,
) -> Result<bool, Problem> {
    let key = url.as_url().as_str();
    let lock = store.exclusive(key, LOCKED).await?;
    if let Some(record) = lock.read()? {
        let web = Web::new(Reach::of(url).await, options.extra_roots.clone());
        if let Err(why) = revoke(&web, &record).await {
            report.warning(format!(
                "the tokens could not be revoked: {why}; they are forgotten here, and end there by themselves or on the server's account page"
            ));
        }
    }
    let was_there = lock.forget().await?;
    // A sign-in that another process conducts right now is its own.
    if let Some(attempt) = store.try_attempt(key)? {
        attempt.clear()?;
    }
    Ok(was_there)
}

/// The refresh token first: with it the server should forget the rest (RFC 7009 §2.1).
async fn revoke(web: &Web, record: &Record) -> Result<(), String> {
    let Some(tokens) = &record.tokens else { return Ok(()) };
    let refresh = match &tokens.refresh {
        Some(refresh) => token_endpoint::revoke(web, record, &refresh.0, "refresh_token").await,
        None => Ok(()),
    };
    let access = token_endpoint::revoke(web, record, &tokens.access.0, "access_token").await;
    refresh.and(access)
}
