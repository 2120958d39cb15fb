//! What every test stands on: a strict fake endpoint, and a harness that drives the real binary.
#![allow(dead_code, reason = "not every tool is in use by every set of tests")]

mod answers;
mod authority;
mod body;
mod channel;
mod endpoint;
mod guard;
mod harness;
mod inbox;
mod lenient;
mod record;
mod reply;
mod rules;
mod serve;
mod skills;
mod store;
mod tls;

use std::time::Duration;

#[allow(unused_imports, reason = "see above")]
pub use self::{
    answers::Surface,
    authority::{
        AuthMethod, Authority, AuthorityBuilder, AuthorityReply, AuthorityRequest, KnownClient,
        MetadataPlace, Page, Standing, get, now, send_raw, try_visit, visit,
    },
    channel::{CHANNEL, PRIVATE, faults},
    endpoint::{Endpoint, EndpointBuilder},
    guard::PrmPlace,
    harness::{Harness, Launch, OneShot, Run, links_in},
    inbox::{Answer, Inbox},
    record::{Fate, Recorded},
    reply::{Reply, Script, Step, error_text, event_text, notification_text, result_text},
    skills::{Skill, digest},
    store::{ConfigDir, SignIn, now_in_ms},
};

/// The revision that the modern era speaks.
pub const MODERN: &str = "2026-07-28";
/// The newest revision of the legacy era.
pub const LEGACY: &str = "2025-11-25";
/// No wait is longer than this: whoever waits until here has failed.
pub const LIMIT: Duration = Duration::from_secs(10);

/// Which of the two protocol eras a side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: `server/discover`, `_meta` on every request.
    Modern,
    /// 2024-11-05 to 2025-11-25: `initialize`.
    Legacy,
}

/// One test body, four tests: each era of the harness with each era of the endpoint.
///
/// `four_eras!(a_call_is_answered, |harness_era, endpoint_era| async { … });`
macro_rules! four_eras {
    ($name:ident, |$harness:ident, $endpoint:ident| async $body:block) => {
        mod $name {
            #[allow(unused_imports, reason = "a body may need nothing from outside")]
            use super::*;
            use $crate::support::Era as Side;

            async fn body($harness: Side, $endpoint: Side) $body

            #[tokio::test]
            async fn modern_to_modern() {
                body(Side::Modern, Era::Modern).await;
            }
            #[tokio::test]
            async fn modern_to_legacy() {
                body(Side::Modern, Era::Legacy).await;
            }
            #[tokio::test]
            async fn legacy_to_modern() {
                body(Side::Legacy, Era::Modern).await;
            }
            #[tokio::test]
            async fn legacy_to_legacy() {
                body(Side::Legacy, Era::Legacy).await;
            }
        }
    };
}
pub(crate) use four_eras;
