//! `subscriptions/listen` of a modern harness (MCP 2026-07-28 "Subscriptions"): a stream that outlives the endpoint's.

use std::sync::Arc;

use bytes::Bytes;

use super::{Relay, refusal};
use crate::endpoint::{Backoff, Filter, Trouble, WatchEvent, missed};
use crate::harness::{error_line, notification_line, result_line};
use crate::wire::meta::{Edit, SUBSCRIPTION_ID};
use crate::wire::{Id, Message, Object, Payload, code};

impl Relay {
    /// Runs a listen to its end and gives its answer.
    pub(super) async fn listen(self: &Arc<Self>, id: &Id, message: &Message) -> Payload {
        let params = message.payload();
        let Ok(Some(notifications)) = params.object("notifications") else {
            let error = refusal::error(code::INVALID_PARAMS, "params.notifications must be an object", None);
            return error_line(id.as_str(), error.into());
        };
        let filter = match self.ready().await {
            Ok(open) => open.offered(Filter::read(&notifications).for_harness()),
            Err(trouble) => return error_line(id.as_str(), refusal::trouble(&trouble, "opening").into()),
        };
        if filter.is_empty() {
            // Changes of tools and prompts are looked into here; there is nothing to tell, and that for as long as wanted.
            self.acknowledge(id, &Filter::default()).await;
            self.leaving.cancelled().await;
            return ended(id);
        }
        let mut acknowledged = false;
        let mut backoff = Backoff::default();
        loop {
            backoff.attempt();
            match self.watch_once(id, &filter, &mut acknowledged).await {
                Ok(()) => return ended(id),
                Err(trouble) if !acknowledged => {
                    return error_line(
                        id.as_str(),
                        refusal::trouble(&trouble, "subscriptions/listen").into(),
                    );
                }
                Err(Trouble::Refused { .. }) => return ended(id),
                Err(_) => {}
            }
            tokio::time::sleep(backoff.pause()).await;
        }
    }

    /// One stream of the endpoint. `Ok`: it ended in good order.
    async fn watch_once(
        self: &Arc<Self>,
        id: &Id,
        filter: &Filter,
        acknowledged: &mut bool,
    ) -> Result<(), Trouble> {
        let open = self.ready().await?;
        let mut watch = open.session.watch(filter).await?;
        if !std::mem::replace(acknowledged, true) {
            self.acknowledge(id, &watch.honoured).await;
        } else {
            for (method, params) in missed(&watch.honoured) {
                self.tell(id, method, &params).await;
            }
        }
        while let Some(event) = watch.events.recv().await {
            match event {
                WatchEvent::Note(method, params) => self.tell(id, &method, &params).await,
                WatchEvent::Ended => return Ok(()),
            }
        }
        Err(Trouble::ConnectionLost)
    }

    async fn acknowledge(&self, id: &Id, honoured: &Filter) {
        let params = format!(r#"{{"notifications":{}}}"#, honoured.to_json());
        self.tell(id, "notifications/subscriptions/acknowledged", &Bytes::from(params)).await;
    }

    async fn tell(&self, id: &Id, method: &str, params: &Bytes) {
        if self.undoubted().await.is_ok() {
            self.stdout.send(notification_line(method, stamped(id, params))).await;
        }
    }
}

/// The parameters of a notification with the id of the listen it belongs to.
fn stamped(id: &Id, params: &Bytes) -> Payload {
    let object = Object::read(std::str::from_utf8(params).unwrap_or("{}")).unwrap_or_default();
    let meta = object.object("_meta").ok().flatten().unwrap_or_default();
    let mut inner = Edit::new(&meta);
    inner.set(SUBSCRIPTION_ID, id.as_str().to_owned());
    let meta = inner.apply(&Bytes::copy_from_slice(meta.text().as_bytes()));
    let mut edit = Edit::new(&object);
    edit.set("_meta", meta);
    edit.apply(params)
}

pub(super) fn ended(id: &Id) -> Payload {
    let id = id.as_str();
    result_line(id, format!(r#"{{"resultType":"complete","_meta":{{"{SUBSCRIPTION_ID}":{id}}}}}"#).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_carry_the_harness_own_listen_id() {
        let text = |params: &'static str| {
            String::from_utf8(
                stamped(&Id::from_json("\"listen:0\""), &Bytes::from_static(params.as_bytes())).into_vec(),
            )
            .unwrap()
        };
        assert_eq!(
            text(r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":7,"x":1.0}}"#),
            r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":"listen:0","x":1.0}}"#
        );
        assert_eq!(
            text(r#"{"uri":"a"}"#),
            r#"{"uri":"a","_meta":{"io.modelcontextprotocol/subscriptionId":"listen:0"}}"#
        );
    }
}
