//! Recording a surface in a lock.

use crate::config::{Config, LockPlace, MAX_LOCK};
use crate::failure::{Exit, Failure};
use crate::net::EndpointUrl;
use crate::report::Report;
use crate::store::{Mode, write_whole};
use crate::surface::{Authorization, Lock, Surface};

use super::read;

/// Writes the lock, where `--expect-hash` is given only if each one matches.
pub(super) async fn write(mut config: Config, report: Report) -> Result<Exit, Failure> {
    let observed = read::surface(&mut config, &report).await?;
    let verified = config.pin.verify(observed).map_err(|why| read::unverified(&config, why))?;
    let Some(place) = &config.lock else {
        return Err(Failure::Usage("--write-lock needs to know where: add --lock FILE".into()));
    };
    record(place, &config.url, config.pin.authorization.clone(), verified.surface())
        .map_err(Failure::Store)?;
    report.info(format!(
        "{} records the surface of {}: {}",
        place.path.display(),
        config.url,
        verified.surface().hash()
    ));
    Ok(Exit::Done)
}

/// Writes a surface down. The error is in words for a person.
pub(super) fn record(
    place: &LockPlace,
    url: &EndpointUrl,
    authorization: Authorization,
    surface: &Surface,
) -> Result<(), String> {
    let written = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now());
    let lock = Lock {
        url: url.to_string(),
        written: written.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        authorization,
        surface: surface.clone(),
    };
    let text = lock.write();
    if text.len() as u64 > MAX_LOCK {
        return Err(format!(
            "the surface is too large for a lock of {MAX_LOCK} bytes; tell the endpoint's operator"
        ));
    }
    let mode = if place.automatic { Mode::Private } else { Mode::Shared };
    write_whole(&place.path, &text, mode).map_err(|why| format!("the lock {} {why}", place.path.display()))
}
