//! Calls of a legacy endpoint that wait for an answer of the user, so that they look like `input_required` inside.
//!
//! The endpoint asks in the middle of a call; the harness's side only knows questions as results (SEP-2322).
//! The call is set aside under a handle, which travels as `requestState` and brings it back.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::exchange::Exchange;
use crate::wire::meta::Edit;
use crate::wire::request::input_required;
use crate::wire::{Message, Request};

/// How long a person may take to answer.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Calls that may wait for a person at once.
const MOST: usize = 256;

/// The key of the one question in `inputRequests`.
pub const QUESTION_KEY: &str = "question";

/// The calls that wait.
#[derive(Debug, Default)]
pub struct Parking {
    waiting: Mutex<HashMap<String, Parked>>,
}

#[derive(Debug)]
struct Parked {
    exchange: Exchange,
    question: Message,
    request: String,
    until: Instant,
}

impl Parking {
    /// Sets a call aside and gives an `input_required` result, or the call back where that cannot be.
    ///
    /// # Errors
    /// The call and its question: too many wait, or the question does not fit into a result.
    pub fn park(
        &self,
        exchange: Exchange,
        question: Message,
        request: &Request,
    ) -> Result<Message, Box<(Exchange, Message)>> {
        let asked = handle().and_then(|handle| Some((as_result(&question, &handle)?, handle)));
        let Some((result, handle)) = asked else { return Err(Box::new((exchange, question))) };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= MOST {
            drop(waiting);
            return Err(Box::new((exchange, question)));
        }
        let parked =
            Parked { exchange, question, request: fingerprint(request), until: Instant::now() + PATIENCE };
        waiting.insert(handle, parked);
        Ok(result)
    }

    /// Brings a call back, with the question that it waits on. Only for the request it was parked for
    /// (same method, same parameters), once, and in time.
    pub fn take(&self, handle: &str, request: &Request) -> Option<(Exchange, Message)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = waiting
            .get(handle)
            .is_some_and(|parked| parked.until > Instant::now() && parked.request == fingerprint(request));
        if !fits {
            return None;
        }
        waiting.remove(handle).map(|parked| (parked.exchange, parked.question))
    }

    /// Gives up all that wait: the endpoint is told that the user answers nothing and the call is cancelled.
    pub fn clear(&self) {
        let all = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_values().for_each(Parked::give_up);
    }

    /// Gives up those that have waited too long.
    pub fn expire(&self) {
        let now = Instant::now();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let late: Vec<_> =
            waiting.iter().filter(|(_, parked)| parked.until <= now).map(|(key, _)| key.clone()).collect();
        let gone: Vec<_> = late.iter().filter_map(|key| waiting.remove(key)).collect();
        drop(waiting);
        gone.into_iter().for_each(Parked::give_up);
    }
}

impl Parked {
    fn give_up(self) {
        self.exchange.session().decline_later(&self.question);
        // Dropping the exchange cancels the call.
    }
}

/// The question in the form of a result.
fn as_result(question: &Message, handle: &str) -> Option<Message> {
    let method = crate::wire::json::quote(question.method().unwrap_or_default());
    // The modern form has no id for sending the user to a URL (MCP 2026-07-28 "Elicitation").
    let payload = question.payload();
    let mut edit = Edit::new(&payload);
    edit.remove("elicitationId");
    let params = edit.apply(&Bytes::copy_from_slice(payload.text().as_bytes())).into_vec();
    let params = String::from_utf8(params).ok()?;
    input_required(&format!(r#""{QUESTION_KEY}":{{"method":{method},"params":{params}}}"#), Some(handle))
}

/// Method and parameters, without what a retry changes. Values are compared, not spellings.
fn fingerprint(request: &Request) -> String {
    let mut members: Vec<_> = request
        .params()
        .members()
        .filter(|member| !matches!(member.key.as_ref(), "_meta" | "inputResponses" | "requestState"))
        .map(|member| {
            let value = serde_json::from_str::<serde_json::Value>(member.value);
            format!(
                "{}:{}",
                member.key,
                value.map_or_else(|_| member.value.to_owned(), |value| value.to_string())
            )
        })
        .collect();
    members.sort();
    format!("{} {}", request.method(), members.join(","))
}

/// 128 unguessable bits, where the system has any.
fn handle() -> Option<String> {
    let mut bytes = [0_u8; 16];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
