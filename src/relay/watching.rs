//! Watching the surface of a modern endpoint: a listen stream of our own, as long as the session lasts (MCP 2026-07-28
//! "Subscriptions"). A legacy endpoint announces changes by itself.

use std::sync::Arc;

use super::wishes::Again;
use super::{Open, Relay};
use crate::endpoint::{Backoff, Filter, Trouble, WatchEvent};
use crate::surface::Kind;
use crate::wire::Era;

impl Relay {
    /// Has changes announced where the endpoint offers that.
    pub(super) async fn watch_surface(self: Arc<Self>, open: Arc<Open>) {
        let observed = open.gate.verified().observed();
        let listed = |kind| observed.list(kind).is_some();
        let filter = Filter {
            tools_list: open.offers.tools_changed,
            prompts_list: open.offers.prompts_changed,
            // Resource templates and skills have no announcement of their own.
            resources_list: open.offers.resources_changed
                && (listed(Kind::ResourceTemplates) || listed(Kind::Skills)),
            uris: Vec::new(),
        };
        if open.session.era() == Era::Legacy || filter.is_empty() {
            return;
        }
        tokio::select! {
            () = open.session.ended() => {}
            () = self.keep_watching(&open, &filter) => {}
        }
    }

    async fn keep_watching(&self, open: &Open, filter: &Filter) {
        let mut backoff = Backoff::default();
        let mut watched = false;
        loop {
            backoff.attempt();
            match open.session.watch(filter).await {
                Ok(watch) if watch.honoured.is_empty() => {
                    self.look_if(watched);
                    return self.report.verbose(|| "the endpoint announces no changes".into());
                }
                Ok(mut watch) => {
                    watched = true;
                    // What changed before the stream was there was not announced on it.
                    self.look_again();
                    while let Some(WatchEvent::Note(method, _)) = watch.events.recv().await {
                        self.announced(&method);
                    }
                }
                Err(trouble @ (Trouble::Refused { .. } | Trouble::HttpStatus { status: 400..=499, .. })) => {
                    self.look_if(watched);
                    return self.report.verbose(|| format!("the endpoint announces no changes: {trouble}"));
                }
                // It was replaced by another sign-in's.
                Err(Trouble::SessionLost) => return self.reopen(open.generation, Again::Lost),
                Err(_) => {}
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// It announced changes and does so no more: what it is now has to be seen once.
    fn look_if(&self, watched: bool) {
        if watched {
            self.look_again();
        }
    }
}
