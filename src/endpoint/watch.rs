//! Watching resources: one `subscriptions/listen` stream (modern), or counted `resources/subscribe` (legacy).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::exchange::{Exchange, Reply, Step, modern_headers};
use super::session::{OWN_LIMIT, OwnMethod, Session, refused};
use super::trouble::Trouble;
use crate::wire::meta::{self, Stamp};
use crate::wire::{Era, Message, Object, json};

/// Events that may wait; a watch that falls further behind ends, and its owner reads afresh.
const QUEUE: usize = 256;

/// What is to be watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The list of tools. Never for a harness: its lists are pinned.
    pub tools_list: bool,
    /// The list of prompts. Never for a harness either.
    pub prompts_list: bool,
    /// The list of resources.
    pub resources_list: bool,
    /// Single resources.
    pub uris: Vec<String>,
}

impl Filter {
    /// Reads the `notifications` member of a listen request or of its acknowledgement.
    pub fn read(notifications: &Object<'_>) -> Self {
        let uris = notifications
            .get("resourceSubscriptions")
            .and_then(|text| json::array_items(text).ok())
            .unwrap_or_default();
        let wants = |member: &str| notifications.get(member) == Some("true");
        Filter {
            tools_list: wants("toolsListChanged"),
            prompts_list: wants("promptsListChanged"),
            resources_list: wants("resourcesListChanged"),
            uris: uris
                .iter()
                .filter_map(|(uri, _)| json::decode_string(uri).map(std::borrow::Cow::into_owned))
                .collect(),
        }
    }

    /// Whether there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty() && !self.resources_list && !self.tools_list && !self.prompts_list
    }

    /// What of it is a harness's business: its lists of tools and prompts are pinned.
    #[must_use]
    pub fn for_harness(self) -> Self {
        Filter { tools_list: false, prompts_list: false, ..self }
    }

    /// The `notifications` member.
    pub fn to_json(&self) -> String {
        let mut members = Vec::new();
        for (wanted, member) in [
            (self.tools_list, "toolsListChanged"),
            (self.prompts_list, "promptsListChanged"),
            (self.resources_list, "resourcesListChanged"),
        ] {
            if wanted {
                members.push(format!("\"{member}\":true"));
            }
        }
        if !self.uris.is_empty() {
            let uris: Vec<_> = self.uris.iter().map(|uri| json::quote(uri)).collect();
            members.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }

    /// Whether an event falls under it. The URI may be that of a sub-resource (MCP "Subscriptions").
    fn wants(&self, method: &str, uri: Option<&str>) -> bool {
        match (method, uri) {
            ("notifications/tools/list_changed", _) => self.tools_list,
            ("notifications/prompts/list_changed", _) => self.prompts_list,
            ("notifications/resources/list_changed", _) => self.resources_list,
            ("notifications/resources/updated", Some(uri)) => {
                self.uris.iter().any(|watched| is_within(uri, watched))
            }
            _ => false,
        }
    }
}

/// What was missed while nothing was watched: as if each resource had changed, so that whoever watches reads afresh.
pub fn missed(honoured: &Filter) -> impl Iterator<Item = (&'static str, Bytes)> {
    let updated = |uri: &String| {
        ("notifications/resources/updated", Bytes::from(format!(r#"{{"uri":{}}}"#, json::quote(uri))))
    };
    honoured.uris.iter().map(updated)
}

/// Whether a URI is the watched one, or that of a part of it.
fn is_within(uri: &str, watched: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '?', '#']))
}

/// What a watch yields.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// A notification: its method and its `params` as they came.
    Note(String, Bytes),
    /// The endpoint ended the stream in good order. A watch that just stops was cut.
    Ended,
}

/// A watch that is open. Ends when dropped.
#[derive(Debug)]
pub struct Watch {
    /// What the endpoint promised to tell.
    pub honoured: Filter,
    /// The errors with which a legacy endpoint refused single resources.
    pub refusals: HashMap<String, Message>,
    /// What it tells.
    pub events: mpsc::Receiver<WatchEvent>,
    _open: Open,
}

#[derive(Debug)]
enum Open {
    Stream(#[expect(dead_code, reason = "closes the stream when dropped")] DropGuard),
    Entry(#[expect(dead_code, reason = "unsubscribes when dropped")] Entry),
}

impl Session {
    /// Starts to watch.
    ///
    /// # Errors
    /// The endpoint refuses, or does not answer usably.
    pub async fn watch(self: &Arc<Self>, filter: &Filter) -> Result<Watch, Trouble> {
        match self.era() {
            Era::Modern => self.listen(filter).await,
            Era::Legacy => Ok(self.subscribe(filter).await),
        }
    }

    async fn listen(self: &Arc<Self>, filter: &Filter) -> Result<Watch, Trouble> {
        const METHOD: &str = "subscriptions/listen";
        let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
        let stamp = Stamp { era: Era::Modern, capabilities: "{}", log_level: None, progress_token: None };
        let stamped =
            meta::stamp_params(&Object::read(&params).unwrap_or_default(), &Object::default(), &[], &stamp);
        let opening = async {
            let mut exchange = Exchange::open(self, METHOD, &stamped, modern_headers(METHOD, None)).await?;
            let first = exchange.next().await;
            Ok((exchange, first))
        };
        let late = Err(Trouble::TimedOut { seconds: OWN_LIMIT.as_secs() });
        let (exchange, first) = tokio::time::timeout(OWN_LIMIT, opening).await.unwrap_or(late)?;
        let honoured = match first {
            Step::Note(note) if note.method() == Some("notifications/subscriptions/acknowledged") => {
                let params = note.payload();
                let said = params.object("notifications").ok().flatten().unwrap_or_default();
                narrowed(Filter::read(&said), filter)
            }
            Step::Done(Reply::Error(message, _)) => return Err(refused(METHOD, &message)),
            Step::Done(Reply::Trouble(trouble)) => return Err(trouble),
            _ => {
                return Err(Trouble::MalformedAnswer(
                    "a subscription that does not begin with its acknowledgement".into(),
                ));
            }
        };
        let (sender, events) = mpsc::channel(QUEUE);
        let closed = CancellationToken::new();
        let (wanted, stop) = (honoured.clone(), closed.clone());
        self.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = follow(exchange, wanted, sender) => {}
            }
        });
        Ok(Watch { honoured, refusals: HashMap::new(), events, _open: Open::Stream(closed.drop_guard()) })
    }

    async fn subscribe(self: &Arc<Self>, filter: &Filter) -> Watch {
        let (sender, events) = mpsc::channel(QUEUE);
        let mut refusals = HashMap::new();
        let mut entry = self.watches.enter(Arc::downgrade(self), sender);
        for uri in &filter.uris {
            // Entered first: whoever stops waiting here leaves nothing behind that is counted.
            entry.uris.push(uri.clone());
            if !self.watches.count_up(uri) {
                continue;
            }
            let params = format!(r#"{{"uri":{}}}"#, json::quote(uri));
            match self.ask_raw(OwnMethod::Subscribe, &params).await {
                Ok(Reply::Result(_)) => continue,
                Ok(Reply::Error(message, _)) => {
                    refusals.insert(uri.clone(), message);
                }
                Ok(Reply::Trouble(trouble)) | Err(trouble) => {
                    self.report().verbose(|| format!("a resource cannot be watched: {trouble}"));
                }
            }
            entry.uris.pop();
            self.watches.count_down(uri);
        }
        let honoured = Filter { uris: entry.uris.clone(), ..filter.clone() };
        self.watches.settle(entry.key, honoured.clone());
        Watch { honoured, refusals, events, _open: Open::Entry(entry) }
    }
}

/// The endpoint may promise less than was asked, and nothing else.
fn narrowed(said: Filter, asked: &Filter) -> Filter {
    Filter {
        tools_list: said.tools_list && asked.tools_list,
        prompts_list: said.prompts_list && asked.prompts_list,
        resources_list: said.resources_list && asked.resources_list,
        uris: asked.uris.iter().filter(|uri| said.uris.contains(uri)).cloned().collect(),
    }
}

async fn follow(mut exchange: Exchange, wanted: Filter, events: mpsc::Sender<WatchEvent>) {
    loop {
        match exchange.next().await {
            Step::Note(note) => {
                let method = note.method().unwrap_or_default().to_owned();
                let fits = wanted.wants(&method, note.payload().string("uri").as_deref());
                if fits && events.send(WatchEvent::Note(method, note.into_payload())).await.is_err() {
                    return;
                }
            }
            Step::Done(Reply::Result(_)) => {
                let _ = events.send(WatchEvent::Ended).await;
                return;
            }
            Step::Question(_) | Step::Done(_) => return,
        }
    }
}

/// The open watches of a legacy session.
#[derive(Debug, Default)]
pub(super) struct Watches {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: HashMap<u64, (Filter, mpsc::Sender<WatchEvent>)>,
    subscribed: HashMap<String, usize>,
}

/// One watch of a legacy session; leaving undoes its subscriptions.
#[derive(Debug)]
struct Entry {
    session: Weak<Session>,
    key: u64,
    uris: Vec<String>,
}

impl Watches {
    fn enter(&self, session: Weak<Session>, events: mpsc::Sender<WatchEvent>) -> Entry {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next += 1;
        let key = state.next;
        state.open.insert(key, (Filter::default(), events));
        Entry { session, key, uris: Vec::new() }
    }

    fn settle(&self, key: u64, filter: Filter) {
        if let Some((held, _)) = self.state.lock().unwrap_or_else(PoisonError::into_inner).open.get_mut(&key)
        {
            *held = filter;
        }
    }

    /// Whether this is the first to watch it.
    fn count_up(&self, uri: &str) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let count = state.subscribed.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Whether nobody watches it any more.
    fn count_down(&self, uri: &str) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.subscribed.get_mut(uri) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            Some(_) => {
                state.subscribed.remove(uri);
                true
            }
            None => false,
        }
    }

    /// Ends all watches: their owners learn that there is nothing more to come.
    pub(super) fn clear(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.clear();
    }

    /// The stream of updates was cut and is back: each watch hears of all that it is for, as if that had changed.
    pub(super) fn tell_missed(&self) {
        const LIST_CHANGED: &str = "notifications/resources/list_changed";
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open.retain(|_, (filter, events)| {
            let list = filter.resources_list.then(|| (LIST_CHANGED, Bytes::from_static(b"{}")));
            list.into_iter()
                .chain(missed(filter))
                .all(|(method, params)| events.try_send(WatchEvent::Note(method.to_owned(), params)).is_ok())
        });
    }

    /// Hands an update to who watches it; gives back what is none, or concerns the surface as well.
    pub(super) fn deliver(&self, message: Message) -> Option<Message> {
        let method = match message.method() {
            Some(method @ ("notifications/resources/updated" | "notifications/resources/list_changed")) => {
                method.to_owned()
            }
            _ => return Some(message),
        };
        let uri = message.payload().string("uri").map(std::borrow::Cow::into_owned);
        let params = Bytes::copy_from_slice(message.payload().text().as_bytes());
        let of_the_surface = method.ends_with("/list_changed");
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // One that cannot keep up is ended; its owner watches again and reads afresh.
        state.open.retain(|_, (filter, events)| {
            !filter.wants(&method, uri.as_deref())
                || events.try_send(WatchEvent::Note(method.clone(), params.clone())).is_ok()
        });
        of_the_surface.then_some(message)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        session.watches.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(&self.key);
        for uri in &self.uris {
            if session.watches.count_down(uri) {
                let (id, uri) = (session.next_id(), json::quote(uri));
                session.send_later(format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/unsubscribe","params":{{"uri":{uri}}}}}"#
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_watched_resource_is_watched_and_a_neighbour_is_not() {
        let filter = Filter { uris: vec!["game://seat/q7".into(), "file:///a/".into()], ..Filter::default() };
        let wants = |uri| filter.wants("notifications/resources/updated", Some(uri));
        assert!(
            wants("game://seat/q7")
                && wants("game://seat/q7/hand")
                && wants("game://seat/q7?x")
                && wants("file:///a/b")
        );
        assert!(!wants("game://seat/q70") && !wants("game://seat") && !wants("file:///b"));
        assert!(!filter.wants("notifications/resources/list_changed", None));
    }

    #[test]
    fn a_filter_is_read_and_written() {
        let text = r#"{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a","\u0062"],"x":1}"#;
        let filter = Filter::read(&Object::read(text).unwrap());
        assert_eq!(
            filter.to_json(),
            r#"{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a","b"]}"#
        );
        let of_harness = filter.for_harness().to_json();
        assert_eq!(of_harness, r#"{"resourcesListChanged":true,"resourceSubscriptions":["a","b"]}"#);
        assert!(!Filter::read(&Object::read(r#"{"promptsListChanged":true}"#).unwrap()).is_empty());
    }
}
