//! A legacy harness and an endpoint that asks: each question becomes a request of ours, the answers a retry (SEP-2322).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Relay, refusal};
use crate::harness::LegacySession;
use crate::surface::Admitted;
use crate::wire::meta::Edit;
use crate::wire::{Object, Payload, Request, json};

/// The protocol has no limit; a call that asks more often than this asks for ever.
const MOST_ROUNDS: u32 = 10;
/// Pause before a retry that was asked for without a question (load shedding).
const PAUSE: Duration = Duration::from_millis(500);

/// The rounds of one call so far.
#[derive(Debug, Default)]
pub(super) struct Asking {
    rounds: u32,
}

impl Relay {
    /// Puts the questions of a result to the harness and gives the request to send next.
    pub(super) async fn next_round(
        self: &Arc<Self>,
        asking: &mut Asking,
        request: Request,
        admitted: &Admitted,
        session: &LegacySession,
    ) -> Result<Request, String> {
        asking.rounds += 1;
        if asking.rounds > MOST_ROUNDS {
            return Err(refusal::own(
                "too_many_rounds",
                "the endpoint asked for input more than 10 times in one call",
            ));
        }
        let result = admitted.payload();
        let state = result.get("requestState");
        let questions = result.object("inputRequests").ok().flatten().unwrap_or_default();
        session.initialized().await;
        let mut responses = Vec::new();
        for member in questions.members() {
            let entry = Object::read(member.value).unwrap_or_default();
            let method = entry.string("method").unwrap_or_default();
            let params = question_params(entry.get("params").unwrap_or("{}"), &method, session);
            let answer = self.questions.ask(&method, params).await;
            let answer = match answer.as_ref().and_then(|message| message.result()) {
                Some(result) if Object::read(result).is_ok() => result.to_owned(),
                _ if method == "elicitation/create" => r#"{"action":"cancel"}"#.to_owned(),
                _ => {
                    return Err(refusal::own(
                        "question_failed",
                        "the harness did not answer what the endpoint asked",
                    ));
                }
            };
            responses.push(format!("{}:{answer}", json::quote(&member.key)));
        }
        if questions.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
        let params = retry_params(&request.params(), &responses, state);
        Ok(request.with_params(&params))
    }
}

/// The same parameters with the answers of this round alone, and the state exactly as it came, if it came.
fn retry_params(params: &Object<'_>, responses: &[String], state: Option<&str>) -> String {
    let mut edit = Edit::new(params);
    if responses.is_empty() {
        edit.remove("inputResponses");
    } else {
        edit.set("inputResponses", format!("{{{}}}", responses.join(",")));
    }
    match state {
        Some(state) => edit.set("requestState", state.to_owned()),
        None => edit.remove("requestState"),
    };
    let bytes = edit.apply(&Bytes::copy_from_slice(params.text().as_bytes())).into_vec();
    String::from_utf8(bytes).unwrap_or_default()
}

/// A question as a legacy harness expects it: URL mode has an id there (MCP 2025-11-25 "Elicitation").
fn question_params(params: &str, method: &str, session: &LegacySession) -> Payload {
    let base = Bytes::copy_from_slice(params.as_bytes());
    let Ok(object) = Object::read(params) else { return base.into() };
    let url_mode = method == "elicitation/create" && object.string("mode").as_deref() == Some("url");
    if !url_mode || object.get("elicitationId").is_some() || session.version != "2025-11-25" {
        return base.into();
    }
    let mut edit = Edit::new(&object);
    edit.set("elicitationId", format!("\"mcp-hasp-{}\"", next_elicitation()));
    edit.apply(&base)
}

/// Only has to differ from the others of this process.
fn next_elicitation() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_carries_the_last_answers_and_the_state_as_it_came() {
        let params = Object::read(r#"{"name":"a","inputResponses":{"old":{}},"requestState":"1"}"#).unwrap();
        let one = ["\"q\":{\"action\":\"accept\"}".to_owned()];
        assert_eq!(
            retry_params(&params, &one, Some("\"\"")),
            r#"{"name":"a","inputResponses":{"q":{"action":"accept"}},"requestState":""}"#
        );
        assert_eq!(retry_params(&params, &[], None), r#"{"name":"a"}"#);
    }
}
