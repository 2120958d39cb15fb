//! A game whose status cannot be watched: one wait for each role that is commanded, and one briefing a second for all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::super::Relay;
use super::roles::Roles;
use super::{LIMIT, LONG_LIMIT, clock};
use crate::channel::{Status, status};
use crate::endpoint::Backoff;
use crate::wire::json;

pub(super) const WAIT: &str = "game_wait";
const BRIEFING: &str = "game_briefing";
const POLICY: &str = "policy_status";
/// Between two briefings.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two looks at what waits for approval.
const APPROVALS: Duration = Duration::from_secs(10);
/// Briefings without an answer, one after the other, before everything is begun afresh.
const MOST_FAILURES: u32 = 3;
/// Roles of one briefing.
const MOST_ROLES: usize = 16;
/// The name under which approvals are told that belong to no role.
const ACCOUNT: &str = "account";

/// What a wait for a role returned.
type Waited = (String, Map<String, Value>);

impl Relay {
    /// Whether the endpoint has the tools of a game.
    pub(super) async fn is_game(&self) -> bool {
        let has = async |name| self.pinned_tool(name).await.is_ok_and(|tool| tool.is_some());
        has(WAIT).await && has(BRIEFING).await
    }

    /// Polls until the endpoint does not answer any more.
    pub(super) async fn poll_game(self: &Arc<Self>, roles: &mut Roles) {
        let has_policies = self.pinned_tool(POLICY).await.is_ok_and(|tool| tool.is_some());
        let takes_role = self.takes(WAIT, "role").await;
        let (sender, mut waited) = mpsc::channel(16);
        // Ended with this future, at the latest when the harness leaves.
        let mut waits = JoinSet::new();
        let mut waiting: HashMap<String, AbortHandle> = HashMap::new();
        let mut briefing = clock(Instant::now(), INTERVAL);
        let mut approvals = clock(Instant::now(), APPROVALS);
        let mut failures = 0;
        loop {
            let due = roles.due();
            tokio::select! {
                _ = briefing.tick() => {
                    let Some(found) = self.consult(BRIEFING, "{}", LIMIT).await else {
                        failures += 1;
                        if failures == MOST_FAILURES || self.seal.is_closed() {
                            return;
                        }
                        continue;
                    };
                    failures = 0;
                    let commanded = learn(roles, &found);
                    waiting.retain(|role, wait| {
                        let stays = commanded.contains(role);
                        if !stays {
                            wait.abort();
                        }
                        stays
                    });
                    for role in commanded {
                        let wait = || Arc::clone(self).wait_for(role.clone(), takes_role, sender.clone());
                        waiting.entry(role.clone()).or_insert_with(|| waits.spawn(Box::pin(wait())));
                    }
                }
                _ = approvals.tick(), if has_policies => {
                    if let Some(found) = self.consult(POLICY, "{}", LIMIT).await {
                        let list = found.get("approvals").or_else(|| found.get("policies"));
                        let approvals = list.map(status::approvals).unwrap_or_default();
                        roles.learn(ACCOUNT, Status { approvals, ..Status::default() });
                    }
                }
                Some((role, found)) = waited.recv() => {
                    roles.learn(&role, Status::read(&found));
                    roles.hear(&role, &Value::Object(found));
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.say_due(roles).await;
                }
            }
        }
    }

    /// Waits for a role, again and again.
    async fn wait_for(self: Arc<Self>, role: String, takes_role: bool, results: mpsc::Sender<Waited>) {
        let Some(channel) = &self.channel else { return };
        let arguments = arguments(takes_role, &role, None);
        let counted = if takes_role { role.as_str() } else { "" };
        let mut backoff = Backoff::default();
        loop {
            let place = channel.waits.enter_ours(counted).await;
            backoff.attempt();
            let begun = Instant::now();
            let found = tokio::select! {
                found = self.consult(WAIT, &arguments, LONG_LIMIT) => found,
                // The model waits twice itself, and learns it from there.
                () = channel.waits.crowded(counted) => continue,
            };
            drop(place);
            match found {
                Some(found) => {
                    if results.send((role.clone(), found)).await.is_err() {
                        return;
                    }
                    // One that does not wait is not asked without end.
                    tokio::time::sleep_until(begun + INTERVAL).await;
                }
                None => tokio::time::sleep(backoff.pause()).await,
            }
        }
    }

    /// What the owner wrote to a role is read by a wait that does not wait.
    pub(super) async fn ask_for_messages(
        self: Arc<Self>,
        role: String,
    ) -> (String, Option<Map<String, Value>>) {
        let found = self.wait_shortly(&role).await;
        (role, found)
    }

    async fn wait_shortly(self: &Arc<Self>, role: &str) -> Option<Map<String, Value>> {
        let channel = self.channel.as_ref()?;
        self.pinned_tool(WAIT).await.ok()??;
        let mut short = None;
        for name in ["timeoutSeconds", "timeout_seconds", "timeout", "seconds"] {
            if self.takes(WAIT, name).await {
                short = Some(name);
                break;
            }
        }
        let takes_role = self.takes(WAIT, "role").await;
        let arguments = arguments(takes_role, role, short);
        let _place = channel.waits.enter_ours(if takes_role { role } else { "" }).await;
        self.consult(WAIT, &arguments, LIMIT).await
    }

    /// Whether a pinned tool has a parameter of that name.
    async fn takes(&self, tool: &str, parameter: &str) -> bool {
        let Ok(Some(tool)) = self.pinned_tool(tool).await else { return false };
        Value::Object(tool).pointer(&format!("/inputSchema/properties/{parameter}")).is_some()
    }
}

fn arguments(takes_role: bool, role: &str, short: Option<&str>) -> String {
    let mut members = Vec::new();
    if takes_role {
        members.push(format!(r#""role":{}"#, json::quote(role)));
    }
    if let Some(name) = short {
        members.push(format!(r#""{name}":0"#));
    }
    format!("{{{}}}", members.join(","))
}

/// What a briefing says of each role; returned are those that this account commands.
fn learn(roles: &mut Roles, briefing: &Map<String, Value>) -> Vec<String> {
    let mut commanded = Vec::new();
    let entries = briefing.get("roles").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for entry in entries.iter().take(MOST_ROLES).filter_map(Value::as_object) {
        let Some(name) = entry.get("role").or_else(|| entry.get("name")).and_then(Value::as_str) else {
            continue;
        };
        roles.learn(name, Status::read(entry));
        if entry.get("commanded") != Some(&Value::Bool(false)) {
            commanded.push(name.to_owned());
        }
    }
    commanded
}
