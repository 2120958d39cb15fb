//! What may stand in an event of the wake channel. Every test's harness checks every event by this.

use serde_json::Value;

/// The method of an event.
pub const CHANNEL: &str = "notifications/claude/channel";
/// Stands in every URI, token and observation of the tests of the channel.
pub const PRIVATE: &str = "s3cr3t";

/// How the sentences begin, and with which `event` in `meta`.
const SENTENCES: [(&str, &str); 7] = [
    ("seated", "You are seated"),
    ("match_ended", "The match is over"),
    ("approval_resolved", "An approval was resolved: "),
    ("owner_message", "The owner of the account wrote:"),
    ("your_turn", "It is your turn."),
    ("ended", "It has ended."),
    ("status_changed", "The status changed: "),
];

/// What is wrong with an event.
pub fn faults(event: &Value, initialized: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("{what}: {event}"));
        }
    };
    let params = &event["params"];
    let names: Vec<_> = params.as_object().map(|params| params.keys().collect()).unwrap_or_default();
    let content = params["content"].as_str().unwrap_or_default();
    let meta = params["meta"].as_object().cloned().unwrap_or_default();
    let kind = meta.get("event").and_then(Value::as_str).unwrap_or_default();
    rule(initialized, "an event before notifications/initialized");
    rule(names == ["content", "meta"], "an event is content and meta");
    let is_ours = |(event, begin): &(&str, &str)| *event == kind && content.starts_with(begin);
    rule(SENTENCES.iter().any(is_ours), "an event that is none of ours");
    let is_key = |key: &String| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    rule(meta.keys().all(is_key), "a key that vanishes without a word");
    let is_short = |value: &Value| value.as_str().is_some_and(|value| value.len() <= 32 && is_plain(value));
    rule(meta.values().all(is_short), "a value that is no short name");
    let text = event.to_string().to_lowercase();
    for never in [PRIVATE, "://", "bearer", "observed"] {
        rule(!text.contains(never), "something private in an event");
    }
    if kind == "owner_message" {
        rule(!content.contains(['<', '>', '\u{1b}', '\u{202e}']), "an owner's text that is not clean");
        rule(content.chars().count() < 50_000, "an owner's text without a bound");
    } else {
        let is_ours = |c: char| c.is_ascii_alphanumeric() || " _-.,:=".contains(c);
        rule(content.len() < 700 && content.chars().all(is_ours), "a sentence that is not ours alone");
    }
    faults
}

fn is_plain(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}
