//! Statuses that are resources: listed afresh each time, watched, read when they change (MCP "Resources", "Subscriptions").

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::Relay;
use super::super::wishes::Again;
use super::roles::Roles;
use super::{LIMIT, clock};
use crate::channel::{Options, Status, result};
use crate::endpoint::{Backoff, Filter, Trouble, Watch, WatchEvent};
use crate::wire::json;

/// Statuses of the endpoint that this began with.
const PREFIX: &str = "playerthree://";
/// Pages of resources that are looked at.
const MOST_PAGES: usize = 20;
/// Statuses that are followed.
const MOST: usize = 16;
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
        Some(distinct(found))
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
        let later = |period| Instant::now() + period;
        let tells_list = watch.as_ref().is_some_and(|watch| watch.honoured.resources_list);
        let (mut reading, mut listing) = (clock(later(READING), READING), clock(later(LOOKING), LOOKING));
        // Ended with this future.
        let mut asking = JoinSet::new();
        loop {
            while let Some(role) = roles.next_to_ask() {
                asking.spawn(Box::pin(Arc::clone(self).ask_for_messages(role)));
            }
            let due = roles.due();
            tokio::select! {
                event = next_event(watch.as_mut()) => match event {
                    Some(WatchEvent::Note(method, _)) if method.ends_with("/list_changed") => {
                        if let Some(left) = self.compare_list(options, roles).await {
                            return left;
                        }
                    }
                    Some(WatchEvent::Note(_, params)) => {
                        let params: Value = serde_json::from_slice(&params).unwrap_or_default();
                        roles.touch(params.get("uri").and_then(Value::as_str).unwrap_or_default());
                    }
                    Some(WatchEvent::Ended) | None => return Left::Lost,
                },
                _ = reading.tick(), if watch.is_none() => roles.touch_all(),
                _ = listing.tick(), if !tells_list => {
                    if let Some(left) = self.compare_list(options, roles).await {
                        return left;
                    }
                }
                Some(Ok((role, found))) = asking.join_next() => {
                    if let Some(found) = found {
                        roles.hear(&role, &Value::Object(found));
                    }
                    roles.was_asked(&role);
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if !self.attend(roles).await {
                        return Left::Lost;
                    }
                }
                () = open.session.ended() => return Left::Lost,
            }
        }
    }

    /// Whether following has to end because the statuses are no longer those that are followed.
    async fn compare_list(self: &Arc<Self>, options: &Options, roles: &Roles) -> Option<Left> {
        match self.statuses(options).await {
            Some(now) if is_same(&now, roles) => None,
            Some(_) => Some(Left::Changed),
            None => Some(Left::Lost),
        }
    }

    /// Reads what may be read, says what may be said. Whether the endpoint answered.
    async fn attend(self: &Arc<Self>, roles: &mut Roles) -> bool {
        if let Some((name, uri)) = roles.next_to_read() {
            let params = format!(r#"{{"uri":{}}}"#, json::quote(&uri));
            let Some(read) = self.inquire("resources/read", &params, LIMIT).await else { return false };
            if let Some(object) = result::of_resource(&read) {
                let status = Status::read(&object);
                if uri.starts_with(PREFIX) || object.contains_key("phase") {
                    roles.learn(&name, status);
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
        for event in roles.take_events() {
            self.say(&event).await;
        }
    }
}

/// Each resource once and each name once, and not too many of them. A second of the same name goes by its URI, which is no
/// name that would ever be said.
fn distinct(found: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut statuses: Vec<(String, String)> = Vec::new();
    for (uri, name) in found {
        if statuses.len() == MOST || statuses.iter().any(|(known, _)| *known == uri) {
            continue;
        }
        let is_taken = statuses.iter().any(|(_, known)| *known == name);
        statuses.push((uri.clone(), if is_taken { uri } else { name }));
    }
    statuses
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
