//! `resources/subscribe` of a legacy harness: one watch at the endpoint for all that it wants to know.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{Relay, refusal};
use crate::endpoint::{Backoff, Filter, Trouble, Watch, WatchEvent, missed};
use crate::harness::notification_line;
use crate::wire::meta::{Edit, SUBSCRIPTION_ID};
use crate::wire::{Message, Object, Payload, code};

/// Changes that may wait for the one before.
const QUEUE: usize = 64;

/// The way to the task that keeps the watch.
#[derive(Debug)]
pub struct Subscriptions {
    changes: mpsc::Sender<Change>,
}

/// A change of what is wanted.
#[derive(Debug)]
pub enum Change {
    /// The harness takes notifications from now on.
    Begin,
    /// One more resource; the answer says whether the endpoint honours it.
    Subscribe(String, oneshot::Sender<Result<(), Payload>>),
    /// One less.
    Unsubscribe(String, oneshot::Sender<Result<(), Payload>>),
}

impl Subscriptions {
    pub(super) fn new() -> (Self, mpsc::Receiver<Change>) {
        let (changes, receiver) = mpsc::channel(QUEUE);
        (Subscriptions { changes }, receiver)
    }

    pub(super) fn begin(&self) {
        let _ = self.changes.try_send(Change::Begin);
    }
}

#[derive(Debug, Default)]
struct Kept {
    wanted: BTreeSet<String>,
    begun: bool,
    watch: Option<Watch>,
    backoff: Backoff,
    /// When to try to get a lost watch back.
    again_at: Option<Instant>,
    /// Updates may have been missed.
    missed: bool,
}

impl Relay {
    /// Passes a change on and waits for its answer.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        method: &str,
        message: &Message,
    ) -> Result<Payload, Payload> {
        let open = self.opened().await?;
        if !open.offers.subscriptions {
            let text = "the endpoint offers no subscriptions";
            return Err(refusal::error(code::METHOD_NOT_FOUND, text, None).into());
        }
        let Some(uri) = message.payload().string("uri").map(std::borrow::Cow::into_owned) else {
            return Err(refusal::error(code::INVALID_PARAMS, "params.uri must be a string", None).into());
        };
        let (answer, wait) = oneshot::channel();
        let change = match method {
            "resources/subscribe" => Change::Subscribe(uri, answer),
            _ => Change::Unsubscribe(uri, answer),
        };
        let _ = self.subscriptions.changes.send(change).await;
        match wait.await {
            Ok(Ok(())) => Ok("{}".to_owned().into()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(refusal::own("leaving", "mcp-hasp is ending").into()),
        }
    }

    /// Keeps one watch for all that is wanted, and gets it back when it is lost.
    pub(super) async fn keep_subscriptions(self: Arc<Self>, mut changes: mpsc::Receiver<Change>) {
        let mut kept = Kept::default();
        loop {
            let again_at = kept.again_at;
            tokio::select! {
                change = changes.recv() => match change {
                    Some(change) => self.change(&mut kept, change).await,
                    None => return,
                },
                event = next_event(kept.watch.as_mut()) => match event {
                    Some(WatchEvent::Note(method, params)) => self.tell_legacy(&method, &params).await,
                    Some(WatchEvent::Ended) | None => kept.lose(),
                },
                () = tokio::time::sleep_until(again_at.unwrap_or_else(Instant::now)), if again_at.is_some() => {
                    self.watch_again(&mut kept).await;
                }
            }
        }
    }

    async fn change(self: &Arc<Self>, kept: &mut Kept, change: Change) {
        match change {
            Change::Begin => {
                kept.begun = true;
                self.watch_again(kept).await;
            }
            Change::Subscribe(uri, answer) => {
                let mut wanted = kept.wanted.clone();
                wanted.insert(uri.clone());
                let outcome = match self.watch_all(&wanted, kept.begun).await {
                    Ok(Some(watch)) if watch.honoured.uris.contains(&uri) => {
                        // The new watch is there before the old one goes.
                        kept.wanted = wanted;
                        kept.found(Some(watch));
                        Ok(())
                    }
                    Ok(watch) => Err(match watch.and_then(|mut watch| watch.refusals.remove(&uri)) {
                        Some(error) => self.shown(error).await,
                        None => {
                            let text = "the endpoint does not tell of changes of this resource";
                            refusal::own("not_honoured", text).into()
                        }
                    }),
                    Err(trouble) => Err(refusal::trouble(&trouble, "resources/subscribe").into()),
                };
                let _ = answer.send(outcome);
            }
            Change::Unsubscribe(uri, answer) => {
                if kept.wanted.remove(&uri) {
                    self.watch_again(kept).await;
                }
                let _ = answer.send(Ok(()));
            }
        }
    }

    /// An error of the endpoint as the harness may see it.
    async fn shown(&self, error: Message) -> Payload {
        let admitted = match self.opened().await {
            Ok(open) => open.gate.admit_error(error),
            Err(error) => return error.into(),
        };
        match admitted {
            Ok(admitted) => admitted.into_bytes().into(),
            Err(why) => refusal::withheld(&why, "resources/subscribe").into(),
        }
    }

    async fn watch_again(self: &Arc<Self>, kept: &mut Kept) {
        kept.backoff.attempt();
        match self.watch_all(&kept.wanted, kept.begun).await {
            // Nothing honoured is nothing to wait for.
            Ok(Some(watch)) if watch.honoured.is_empty() => kept.found(None),
            Ok(watch) => {
                let honoured = watch.as_ref().map(|watch| watch.honoured.clone()).unwrap_or_default();
                kept.found(watch);
                if std::mem::take(&mut kept.missed) {
                    for (method, params) in missed(&honoured) {
                        self.tell_legacy(method, &params).await;
                    }
                }
            }
            // It knows no such stream: asking again would not help.
            Err(Trouble::Refused { .. }) => kept.found(None),
            Err(_) => kept.lose(),
        }
    }

    /// Watches all that is wanted; `None` when that is nothing.
    async fn watch_all(
        self: &Arc<Self>,
        wanted: &BTreeSet<String>,
        begun: bool,
    ) -> Result<Option<Watch>, Trouble> {
        if wanted.is_empty() && !begun {
            return Ok(None);
        }
        let open = self.ready().await?;
        let filter = Filter {
            resources_list: begun && open.offers.resources_changed,
            uris: wanted.iter().cloned().collect(),
            ..Filter::default()
        };
        if filter.is_empty() {
            return Ok(None);
        }
        open.session.watch(&filter).await.map(Some)
    }

    async fn tell_legacy(&self, method: &str, params: &Bytes) {
        if self.undoubted().await.is_ok() {
            self.stdout.send(notification_line(method, unstamped(params))).await;
        }
    }
}

impl Kept {
    fn found(&mut self, watch: Option<Watch>) {
        self.watch = watch;
        self.again_at = None;
    }

    fn lose(&mut self) {
        self.watch = None;
        self.missed = true;
        self.again_at = Some(Instant::now() + self.backoff.pause());
    }
}

async fn next_event(watch: Option<&mut Watch>) -> Option<WatchEvent> {
    match watch {
        Some(watch) => watch.events.recv().await,
        None => std::future::pending().await,
    }
}

/// Legacy notifications name no listen.
fn unstamped(params: &Bytes) -> Payload {
    let object = Object::read(std::str::from_utf8(params).unwrap_or("{}")).unwrap_or_default();
    let Ok(Some(meta)) = object.object("_meta") else { return params.clone().into() };
    if meta.get(SUBSCRIPTION_ID).is_none() {
        return params.clone().into();
    }
    let mut edit = Edit::new(&object);
    if meta.len() == 1 {
        edit.remove("_meta");
    } else {
        let mut inner = Edit::new(&meta);
        inner.remove(SUBSCRIPTION_ID);
        edit.set("_meta", inner.apply(&Bytes::copy_from_slice(meta.text().as_bytes())));
    }
    edit.apply(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_harness_sees_no_listen_id() {
        let text = |params: &'static str| {
            String::from_utf8(unstamped(&Bytes::from_static(params.as_bytes())).into_vec()).unwrap()
        };
        assert_eq!(
            text(r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#),
            r#"{"uri":"a"}"#
        );
        assert_eq!(
            text(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7,"x":1},"uri":"a"}"#),
            r#"{"_meta":{"x":1},"uri":"a"}"#
        );
        assert_eq!(text(r#"{"uri":"a"}"#), r#"{"uri":"a"}"#);
    }
}
