//! Statuses that are resources: listed afresh each time, watched, read when they change (MCP "Resources", "Subscriptions").

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::super::Relay;
use super::super::wishes::Again;
use super::LIMIT;
use super::roles::Roles;
use crate::channel::{Options, Status, result};
use crate::endpoint::{Backoff, Filter, Trouble, Watch, WatchEvent};
use crate::wire::json;

/// Statuses of the endpoint that this began with.
const PREFIX: &str = "playerthree://";
/// Pages of resources that are looked at.
const MOST_PAGES: usize = 20;
/// Statuses that are followed.
const MOST: usize = 64;
/// How often they are read where their changes are not told.
const READING: Duration = Duration::from_secs(5);
/// How often it is looked for some where there are none.
const LOOKING: Duration = Duration::from_secs(30);

/// Why following ended.
enum Left {
    /// The list changed.
    Changed,
    /// The stream ended, or the endpoint cannot be asked.
    Lost,
    /// Its changes are not told, and there is another way to learn of them.
    NotTold,
}

impl Relay {
    /// Finds out where to look, and looks, for as long as the run lasts.
    pub(super) async fn keep_statuses(self: &Arc<Self>, options: &Options) {
        let mut roles = Roles::default();
        let mut backoff = Backoff::default();
        let mut told = false;
        while !self.seal.is_closed() {
            backoff.attempt();
            let left = match self.statuses(options).await {
                Some(found) if !found.is_empty() => self.follow(options, &mut roles, found).await,
                Some(_) => Left::NotTold,
                None => Left::Lost,
            };
            let left = match left {
                Left::NotTold if self.is_game().await => {
                    self.poll_game(&mut roles).await;
                    Left::Lost
                }
                left => left,
            };
            match left {
                Left::Changed => tokio::time::sleep(Duration::from_secs(1)).await,
                Left::Lost => tokio::time::sleep(backoff.pause()).await,
                Left::NotTold => {
                    if !std::mem::replace(&mut told, true) && options.wait.is_none() {
                        self.report.warning("the endpoint has no status that the channel knows; nothing will wake a session until it has one (--channel-resource, --channel-wait)");
                    }
                    tokio::time::sleep(LOOKING).await;
                }
            }
        }
    }

    /// URI and name of each status there is. `None`: that cannot be told now.
    async fn statuses(self: &Arc<Self>, options: &Options) -> Option<Vec<(String, String)>> {
        let is_status = |uri: &str| {
            uri.starts_with(PREFIX) || options.resources.iter().any(|prefix| uri.starts_with(prefix))
        };
        let mut found: Vec<(String, String)> = Vec::new();
        let mut params = "{}".to_owned();
        self.ready().await.ok()?;
        for _ in 0..MOST_PAGES {
            let Some(page) = self.inquire("resources/list", &params, LIMIT).await else {
                // It lists no resources, or cannot just now; in the first case nothing is lost by asking again.
                return if self.lists_resources().await { None } else { Some(Vec::new()) };
            };
            let (resources, next) = result::listed(&page);
            found.extend(resources.into_iter().filter(|(uri, _)| is_status(uri)));
            let Some(cursor) = next.filter(|_| found.len() < MOST) else { break };
            params = format!(r#"{{"cursor":{}}}"#, json::quote(&cursor));
        }
        found.truncate(MOST);
        Some(found)
    }

    async fn lists_resources(&self) -> bool {
        let Ok(open) = self.ready().await else { return true };
        let opening: Value = serde_json::from_slice(&open.served().opening).unwrap_or_default();
        opening.pointer("/capabilities/resources").is_some()
    }

    async fn follow(
        self: &Arc<Self>,
        options: &Options,
        roles: &mut Roles,
        found: Vec<(String, String)>,
    ) -> Left {
        let Ok(open) = self.ready().await else { return Left::Lost };
        let filter = Filter {
            resources_list: open.offers.resources_changed,
            uris: found.iter().map(|(uri, _)| uri.clone()).collect(),
            ..Filter::default()
        };
        let mut watch = match open.session.watch(&filter).await {
            // A part of them is not enough: what is not told of would never be.
            Ok(watch) => Some(watch).filter(|watch| watch.honoured.uris.len() == filter.uris.len()),
            Err(Trouble::Refused { .. } | Trouble::HttpStatus { status: 400..=499, .. }) => None,
            Err(Trouble::SessionLost) => {
                self.reopen(open.generation, Again::Lost);
                return Left::Lost;
            }
            Err(_) => return Left::Lost,
        };
        if watch.is_none() && self.is_game().await {
            return Left::NotTold;
        }
        // What changed before they were watched was not told.
        roles.follow(&found);
        let mut reading = tokio::time::interval_at(Instant::now() + READING, READING);
        reading.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let due = roles.due();
            tokio::select! {
                event = next_event(watch.as_mut()) => match event {
                    Some(WatchEvent::Note(method, _)) if method.ends_with("/list_changed") => {
                        match self.statuses(options).await {
                            Some(now) if is_same(&now, roles) => {}
                            Some(_) => return Left::Changed,
                            None => return Left::Lost,
                        }
                    }
                    Some(WatchEvent::Note(_, params)) => {
                        let params: Value = serde_json::from_slice(&params).unwrap_or_default();
                        roles.touch(params.get("uri").and_then(Value::as_str).unwrap_or_default());
                    }
                    Some(WatchEvent::Ended) | None => return Left::Lost,
                },
                _ = reading.tick(), if watch.is_none() => roles.touch_all(),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if !self.attend(roles).await {
                        return Left::Lost;
                    }
                }
                () = open.session.ended() => return Left::Lost,
            }
        }
    }

    /// Reads what may be read, says what may be said. Whether the endpoint answered.
    async fn attend(self: &Arc<Self>, roles: &mut Roles) -> bool {
        if let Some((name, uri)) = roles.to_read() {
            let params = format!(r#"{{"uri":{}}}"#, json::quote(&uri));
            let Some(read) = self.inquire("resources/read", &params, LIMIT).await else { return false };
            if let Some(object) = result::of_resource(&read) {
                let status = Status::read(&object);
                if uri.starts_with(PREFIX) || object.contains_key("phase") {
                    if roles.learn(&name, status) {
                        self.ask_for_messages(roles, &name).await;
                    }
                } else {
                    roles.learn_fields(&name, status);
                }
            } else {
                self.report.verbose(|| "a status is no JSON object of a bounded size; ignored".into());
            }
        }
        self.say_due(roles).await;
        true
    }

    /// Says the events whose time has come.
    pub(super) async fn say_due(&self, roles: &mut Roles) {
        for event in roles.to_say() {
            self.say(&event).await;
        }
    }
}

fn is_same(found: &[(String, String)], roles: &Roles) -> bool {
    found.len() == roles.followed() && found.iter().all(|(uri, name)| roles.follows(uri, name))
}

async fn next_event(watch: Option<&mut Watch>) -> Option<WatchEvent> {
    match watch {
        Some(watch) => watch.events.recv().await,
        None => std::future::pending().await,
    }
}
