//! What arrived at the authorization server, in order, and the rules that were broken.

use std::{collections::BTreeMap, fmt::Write as _, sync::Mutex};

use bytes::Bytes;
use serde_json::Value;
use tokio::{sync::watch, time::timeout};
use url::form_urlencoded;

use crate::support::LIMIT;

/// One HTTP request as it arrived.
#[derive(Clone, Debug)]
pub struct AuthorityRequest {
    /// Its place in the order of arrival, from 0.
    pub order: usize,
    /// `POST`, `GET`, …
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query as it came; empty where there is none.
    pub raw_query: String,
    /// The query, decoded; the last value where a name came twice.
    pub query: BTreeMap<String, String>,
    /// Header names in lower case, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body's exact bytes.
    pub body: Bytes,
    /// The body as a form, where its content type says so.
    pub form: BTreeMap<String, String>,
    /// The body as JSON; `Null` where it is none.
    pub json: Value,
    /// The status it was answered with; 0 while it is open or when it was cut.
    pub status: u16,
}

impl AuthorityRequest {
    pub(super) fn new(method: &str, target: &str, headers: Vec<(String, String)>, body: Bytes) -> Self {
        let (path, raw_query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            order: 0,
            method: method.to_owned(),
            path: path.to_owned(),
            raw_query: raw_query.to_owned(),
            query: decoded(raw_query.as_bytes()).into_iter().collect(),
            headers,
            json: serde_json::from_slice(&body).unwrap_or_default(),
            body,
            form: BTreeMap::new(),
            status: 0,
        };
        if request.media_type() == "application/x-www-form-urlencoded" {
            request.form = request.form_pairs().into_iter().collect();
        }
        request
    }

    /// The value of a header; the first where there are several.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is for that endpoint: `/token`, also below the path of the issuer.
    pub fn is_for(&self, place: &str) -> bool {
        self.path.ends_with(place)
    }

    /// A token request with a refresh token.
    pub fn is_refresh(&self) -> bool {
        self.is_for("/token") && self.form.get("grant_type").is_some_and(|kind| kind == "refresh_token")
    }

    pub(super) fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    pub(super) fn query_pairs(&self) -> Vec<(String, String)> {
        decoded(self.raw_query.as_bytes())
    }

    pub(super) fn form_pairs(&self) -> Vec<(String, String)> {
        decoded(&self.body)
    }
}

pub(super) fn decoded(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// Everything one authorization server has seen.
#[derive(Default)]
pub struct Log {
    requests: Mutex<Vec<AuthorityRequest>>,
    violations: Mutex<Vec<String>>,
    allowed: Mutex<Vec<String>>,
    changed: watch::Sender<()>,
}

impl Log {
    /// Writes a request down, and says which one it is.
    pub fn record(&self, mut request: AuthorityRequest) -> AuthorityRequest {
        let mut requests = self.requests.lock().unwrap();
        request.order = requests.len();
        requests.push(request.clone());
        drop(requests);
        self.changed.send_replace(());
        request
    }

    /// Says how a request was answered.
    pub fn answered(&self, order: usize, status: u16) {
        self.requests.lock().unwrap()[order].status = status;
        self.changed.send_replace(());
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<AuthorityRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Notes that the client broke a rule, unless the test allows it.
    pub fn violation(&self, text: String) {
        if !self.allowed.lock().unwrap().iter().any(|words| text.contains(words.as_str())) {
            self.violations.lock().unwrap().push(text);
            self.changed.send_replace(());
        }
    }

    /// Violations with those words do not count from now on.
    pub fn allow(&self, words: &str) {
        self.allowed.lock().unwrap().push(words.to_owned());
    }

    /// Takes what was noted so far.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut *self.violations.lock().unwrap())
    }

    /// Waits for a condition; panics with everything recorded when it does not come true in time.
    pub async fn expect(&self, condition: impl Fn(&[AuthorityRequest]) -> bool) {
        let mut changed = self.changed.subscribe();
        let coming = async {
            while !condition(&self.requests()) {
                changed.changed().await.unwrap();
            }
        };
        let in_time = timeout(LIMIT, coming).await.is_ok();
        assert!(in_time, "the authorization server waited in vain; it saw:\n{}", self.transcript());
    }

    /// Everything recorded so far, for a person to read.
    pub fn transcript(&self) -> String {
        let mut text = String::new();
        for request in self.requests.lock().unwrap().iter() {
            let AuthorityRequest { order, method, path, raw_query, headers, status, .. } = request;
            let body = String::from_utf8_lossy(&request.body);
            let _ = writeln!(
                text,
                "  #{order} {method} {path} [{status}]\n     ?{raw_query}\n     {headers:?}\n     {body}"
            );
        }
        for violation in self.violations.lock().unwrap().iter() {
            let _ = writeln!(text, "  violation: {violation}");
        }
        text
    }
}
