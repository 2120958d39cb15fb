//! The tasks of the wake channel: they ask the endpoint on their own account, through the same gate as every request of the
//! harness, and say what is news as a closed list of events. They end with the run.

mod game;
mod roles;
mod statuses;
mod turns;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::Relay;
use crate::channel::{self, Event, Options};
use crate::endpoint::Trouble;
use crate::harness::notification_line;
use crate::surface::Kind;
use crate::surface::gate::Shape;
use crate::wire::{Client, Declared, Era, Message, Request, json, parse};

pub(super) use waits::Waits;

/// How long an answer to a question of our own may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The same for a tool that waits.
const LONG_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What the channel shares with the rest of a run.
#[derive(Debug)]
pub(super) struct Channel {
    options: Options,
    /// The harness takes notifications.
    begun: watch::Sender<bool>,
    pub(super) waits: Arc<Waits>,
}

impl Channel {
    pub(super) fn new(options: Options) -> Self {
        Channel { options, begun: watch::Sender::new(false), waits: Arc::default() }
    }

    /// The harness said `notifications/initialized`.
    pub(super) fn begin(&self) {
        self.begun.send_replace(true);
    }
}

/// A clock that strikes then, and after each period; what it missed it does not make up for.
fn clock(first: Instant, period: Duration) -> Interval {
    let mut clock = tokio::time::interval_at(first, period);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    clock
}

/// For which role the harness waits, where a request of it is such a wait.
pub(super) fn waits_for(message: &Message) -> Option<String> {
    let params = message.payload();
    if message.method() != Some("tools/call") || params.string("name").as_deref() != Some(game::WAIT) {
        return None;
    }
    let arguments = params.object("arguments").ok().flatten().unwrap_or_default();
    Some(arguments.string("role").map(std::borrow::Cow::into_owned).unwrap_or_default())
}

impl Relay {
    /// Keeps the channel. Nothing is asked or said before the harness is initialized.
    pub(super) async fn keep_channel(self: Arc<Self>) {
        let Some(channel) = &self.channel else { return };
        // The sender is ours, so waiting cannot fail.
        let _ = channel.begun.subscribe().wait_for(|begun| *begun).await;
        let turns = async {
            if let Some(wait) = &channel.options.wait {
                Box::pin(self.keep_turns(wait)).await;
            }
        };
        tokio::join!(Box::pin(self.keep_statuses(&channel.options)), turns);
    }

    /// Says an event, unless the surface is in doubt: then it waits, or is never said.
    async fn say(&self, event: &Event) {
        if self.undoubted().await.is_ok() {
            self.stdout.send(notification_line(channel::METHOD, event.params().into())).await;
        }
    }

    /// Sends a request of the channel and returns its result. `None`: it has no usable one now.
    async fn inquire(self: &Arc<Self>, method: &str, params: &str, limit: Duration) -> Option<String> {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":{},"params":{params}}}"#, json::quote(method));
        let message = parse(text.into_bytes()).ok()?;
        // It can answer nothing, so nobody is asked anything on its behalf.
        let request = Request::new(message, Arc::new(Declared::new(Client::default())), None);
        let crossed = tokio::time::timeout(limit, self.cross(&request, Era::Modern)).await;
        let admitted = crossed.ok()?.ok()?;
        match admitted.shape() {
            Shape::Complete(_) => String::from_utf8(admitted.into_bytes().to_vec()).ok(),
            Shape::InputRequired | Shape::Error => None,
        }
    }

    /// Calls a pinned tool. `None`: it has no usable result now.
    async fn consult(
        self: &Arc<Self>,
        tool: &str,
        arguments: &str,
        limit: Duration,
    ) -> Option<Map<String, Value>> {
        let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, json::quote(tool));
        channel::result::of_tool(&self.inquire("tools/call", &params, limit).await?)
    }

    /// A pinned tool as it was listed.
    async fn pinned_tool(&self, name: &str) -> Result<Option<Map<String, Value>>, Trouble> {
        let open = self.ready().await?;
        let item = open.served().list(Kind::Tools).and_then(|list| list.item(name));
        Ok(item.and_then(|item| serde_json::from_str(item).ok()))
    }
}
