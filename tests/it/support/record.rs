//! What arrived at the endpoint, in order, and what became of it.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use serde_json::{Value, value::RawValue};
use tokio::{sync::watch, time::timeout};

use super::LIMIT;

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The answer is not complete yet.
    Open,
    /// The answer was handed over whole.
    Answered,
    /// The client went away before the answer was complete.
    ClosedByClient,
    /// The endpoint broke it off, as its script said or because it was stopped.
    CutByEndpoint,
}

/// One HTTP request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its place in the order of arrival, from 0.
    pub order: usize,
    /// `POST`, `GET`, `DELETE`, …
    pub verb: String,
    /// Path and query.
    pub path: String,
    /// Header names in lower case, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body's exact bytes.
    pub body: Bytes,
    /// The body parsed; `Null` where it is not JSON.
    pub json: Value,
    /// How the exchange ended, or that it has not.
    pub fate: Fate,
}

impl Recorded {
    /// The value of a header; the first where there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC method; empty for responses and for anything that is not JSON-RPC.
    pub fn method(&self) -> &str {
        self.json["method"].as_str().unwrap_or_default()
    }

    /// The member of `params` with that name; `Null` where there is none.
    pub fn param(&self, name: &str) -> &Value {
        &self.json["params"][name]
    }

    /// The tool, prompt or URI that this request is about; empty where there is none.
    pub fn subject(&self) -> &str {
        self.param("name").as_str().or(self.param("uri").as_str()).unwrap_or_default()
    }

    /// The exact text of the `id`; `null` where there is none.
    pub fn id_raw(&self) -> String {
        let members: HashMap<String, Box<RawValue>> = serde_json::from_slice(&self.body).unwrap_or_default();
        members.get("id").map_or_else(|| "null".to_owned(), |id| id.get().to_owned())
    }

    /// A JSON-RPC request (a method and an id).
    pub fn is_request(&self) -> bool {
        self.json["method"].is_string() && self.json.get("id").is_some()
    }

    /// A JSON-RPC notification (a method, no id).
    pub fn is_notification(&self) -> bool {
        self.json["method"].is_string() && self.json.get("id").is_none()
    }

    /// A JSON-RPC response (an outcome, no method).
    pub fn is_response(&self) -> bool {
        self.json.get("method").is_none()
            && (self.json.get("result").is_some() || self.json.get("error").is_some())
    }
}

/// Everything one endpoint has seen.
#[derive(Default)]
pub struct Book {
    requests: Mutex<Vec<Recorded>>,
    violations: Mutex<Vec<String>>,
    changed: watch::Sender<()>,
    stopping: AtomicBool,
}

impl Book {
    /// Writes a request down; the ticket says later how it ended.
    pub fn record(self: &Arc<Self>, mut request: Recorded) -> (Recorded, Ticket) {
        let mut requests = self.requests.lock().unwrap();
        request.order = requests.len();
        requests.push(request.clone());
        drop(requests);
        self.tell();
        let ticket = Ticket { book: self.clone(), order: request.order, settled: false };
        (request, ticket)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().unwrap().clone()
    }

    /// Notes that the client broke a rule.
    pub fn violation(&self, text: String) {
        self.violations.lock().unwrap().push(text);
        self.tell();
    }

    /// Takes what was noted so far.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut *self.violations.lock().unwrap())
    }

    /// From now on (or no longer) an exchange that is dropped was cut by the endpoint.
    pub fn stopping(&self, yes: bool) {
        self.stopping.store(yes, Ordering::Relaxed);
    }

    /// Wakes everybody who waits for something that is not a request.
    pub fn tell(&self) {
        self.changed.send_replace(());
    }

    /// Waits for a condition, for as long as it takes.
    pub async fn until<T>(&self, mut condition: impl FnMut(&[Recorded]) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(found) = condition(&self.requests.lock().unwrap()) {
                return found;
            }
            changed.changed().await.unwrap();
        }
    }

    /// Waits for a condition; panics with everything recorded when it does not come true in time.
    pub async fn expect<T>(&self, what: &str, condition: impl FnMut(&[Recorded]) -> Option<T>) -> T {
        match timeout(LIMIT, self.until(condition)).await {
            Ok(found) => found,
            Err(_) => panic!("the endpoint waited in vain for {what}; it saw:\n{}", self.transcript()),
        }
    }

    /// Everything recorded so far, for a person to read.
    pub fn transcript(&self) -> String {
        let mut text = String::new();
        for request in self.requests.lock().unwrap().iter() {
            let body = String::from_utf8_lossy(&request.body);
            let (order, verb, path, fate) = (request.order, &request.verb, &request.path, request.fate);
            let _ = writeln!(
                text,
                "  #{order} {verb} {path} [{fate:?}]\n     {:?}\n     {body}",
                request.headers
            );
        }
        for violation in self.violations.lock().unwrap().iter() {
            let _ = writeln!(text, "  violation: {violation}");
        }
        text
    }
}

/// Follows one exchange: dropped before it was settled, it means that the client went away.
pub struct Ticket {
    book: Arc<Book>,
    order: usize,
    settled: bool,
}

impl Ticket {
    /// Says how the exchange ended; the first word counts.
    pub fn settle(&mut self, fate: Fate) {
        if !self.settled {
            self.settled = true;
            self.book.requests.lock().unwrap()[self.order].fate = fate;
            self.book.tell();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let stopping = self.book.stopping.load(Ordering::Relaxed);
        self.settle(if stopping { Fate::CutByEndpoint } else { Fate::ClosedByClient });
    }
}
