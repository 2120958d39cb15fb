//! `--channel-wait`: one tool that waits, called again and again, for endpoints without statuses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::super::Relay;
use super::LONG_LIMIT;
use crate::channel::{Event, Identifier, Wait};
use crate::endpoint::Backoff;

/// Between two calls, and between two events.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two calls once it is over.
const OVER: Duration = Duration::from_secs(30);
/// Between two calls of a tool that does not wait and says nothing new.
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

impl Relay {
    /// Calls it as long as the run lasts.
    pub(super) async fn keep_turns(self: &Arc<Self>, wait: &Wait) {
        let tool = loop {
            match self.pinned_tool(&wait.tool).await {
                Ok(tool) => break tool,
                Err(_) if self.seal.is_closed() => return,
                Err(_) => tokio::time::sleep(INTERVAL).await,
            }
        };
        if let Err(why) = may_be_called(tool) {
            self.report.error(format!(
                "--channel-wait {}: {why}; it is not called",
                crate::report::visible(&wait.tool, 100)
            ));
            return;
        }
        let name = Identifier::read(&wait.tool).or_else(|| Identifier::read("tool"));
        let Some(name) = name else { return };
        let mut turns = Turns::default();
        let mut backoff = Backoff::default();
        let mut interval = INTERVAL;
        while !self.seal.is_closed() {
            backoff.attempt();
            let begun = Instant::now();
            let Some(found) = self.consult(&wait.tool, &wait.arguments, LONG_LIMIT).await else {
                tokio::time::sleep(backoff.pause()).await;
                continue;
            };
            let news = turns.news(wait.field.as_deref(), &found);
            let waited = begun.elapsed() >= INTERVAL;
            interval = if waited || news.is_some() { INTERVAL } else { (interval * 2).min(LONGEST_INTERVAL) };
            match news {
                Some(News::Turn) => self.say(&Event::Turn { tool: name.clone() }).await,
                Some(News::Over) => self.say(&Event::Over { tool: name.clone() }).await,
                None => {}
            }
            tokio::time::sleep_until(begun + if turns.over { OVER } else { interval }).await;
        }
    }
}

/// It is called without anybody's asking, so it has to be a listed one that says that it changes nothing.
fn may_be_called(tool: Option<Map<String, Value>>) -> Result<(), &'static str> {
    let Some(tool) = tool else { return Err("the endpoint lists no such tool") };
    let says = tool.get("annotations").and_then(|annotations| annotations.get("readOnlyHint"));
    match says {
        Some(Value::Bool(true)) => Ok(()),
        _ => Err("the endpoint does not say that this tool only reads (annotations.readOnlyHint)"),
    }
}

/// What was seen of the field.
#[derive(Debug, Default)]
struct Turns {
    last: Option<Value>,
    over: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum News {
    Turn,
    Over,
}

impl Turns {
    fn news(&mut self, field: Option<&str>, found: &Map<String, Value>) -> Option<News> {
        let now = match field {
            Some(field) => {
                found.get(field).filter(|value| !value.is_object() && !value.is_array()).cloned()?
            }
            None => Value::Object(found.clone()),
        };
        if is_over(&now, found) {
            self.last = Some(now);
            return (!std::mem::replace(&mut self.over, true)).then_some(News::Over);
        }
        self.over = false;
        let last = self.last.replace(now.clone());
        match (last, now) {
            // A yes counts whether or not there was a no before.
            (last, Value::Bool(true)) => (last != Some(Value::Bool(true))).then_some(News::Turn),
            (_, Value::Bool(false)) | (None, _) => None,
            (Some(last), now) => (last != now).then_some(News::Turn),
        }
    }
}

/// Whether the field, or the result beside it, says that there will be no more turns.
fn is_over(field: &Value, found: &Map<String, Value>) -> bool {
    let is_word = |value: &Value| {
        matches!(value.as_str(), Some("ended" | "over" | "finished" | "complete" | "completed" | "game_over"))
    };
    let says = |name: &str| found.get(name) == Some(&Value::Bool(true));
    is_word(field)
        || ["ended", "over", "finished", "game_over", "done"].into_iter().any(says)
        || ["phase", "status"].into_iter().any(|name| found.get(name).is_some_and(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn story(field: Option<&str>, results: &[Value]) -> Vec<Option<News>> {
        let mut turns = Turns::default();
        results.iter().map(|result| turns.news(field, result.as_object().unwrap())).collect()
    }

    #[test]
    fn a_yes_is_a_turn_once() {
        let (yes, no) = (json!({"your_turn": true, "board": 1}), json!({"your_turn": false, "board": 2}));
        let told = story(Some("your_turn"), &[no.clone(), yes.clone(), yes.clone(), no, yes]);
        assert_eq!(told, [None, Some(News::Turn), None, None, Some(News::Turn)]);
        assert_eq!(story(Some("your_turn"), &[json!({"your_turn": true})]), [Some(News::Turn)]);
    }

    #[test]
    fn another_value_is_a_turn_and_the_first_is_not() {
        let ply = |ply: u64| json!({"ply": ply, "note": "x"});
        assert_eq!(story(Some("ply"), &[ply(1), ply(1), ply(2)]), [None, None, Some(News::Turn)]);
        assert_eq!(story(None, &[ply(1), ply(1), ply(2)]), [None, None, Some(News::Turn)]);
        assert_eq!(
            story(Some("ply"), &[json!({}), json!({"ply": {"a": 1}}), json!({"ply": [1]})]),
            [None, None, None]
        );
    }

    #[test]
    fn an_end_is_told_once_until_it_goes_on() {
        let over = json!({"phase": "ended", "your_turn": false});
        let told = story(
            Some("your_turn"),
            &[json!({"your_turn": true}), over.clone(), over, json!({"your_turn": true})],
        );
        assert_eq!(told, [Some(News::Turn), Some(News::Over), None, Some(News::Turn)]);
        assert_eq!(story(Some("status"), &[json!({"status": "finished"})]), [Some(News::Over)]);
    }

    #[test]
    fn only_a_listed_tool_that_reads_is_called() {
        let tool = |tool: Value| tool.as_object().cloned();
        assert!(may_be_called(tool(json!({"annotations": {"readOnlyHint": true}}))).is_ok());
        for wrong in [
            json!({}),
            json!({"annotations": {"readOnlyHint": "true"}}),
            json!({"annotations": {"readOnlyHint": false}}),
        ] {
            assert!(may_be_called(tool(wrong)).is_err());
        }
        assert!(may_be_called(None).is_err());
    }
}
