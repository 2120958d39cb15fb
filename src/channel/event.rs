//! What may be said into a session: a closed list of events. Each is a sentence of ours with fields of a closed form; the
//! one text of somebody else is the account owner's. Only here is such a notification made.

use serde_json::{Map, Value};

use super::identifier::Identifier;
use super::owner::OwnerText;

/// Something that wakes a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The agent was seated in a match.
    Seated {
        /// As what.
        role: Option<Identifier>,
        /// On which side.
        team: Option<Identifier>,
        /// In which match.
        game: Option<Identifier>,
    },
    /// A match ended.
    Ended {
        /// For whom.
        role: Option<Identifier>,
        /// How, where that was said.
        outcome: Option<Identifier>,
        /// Which one.
        game: Option<Identifier>,
    },
    /// Somebody decided about something that waited for approval.
    Approval {
        /// What it was about.
        kind: Identifier,
        /// Which version of it.
        version: Option<Identifier>,
        /// What was decided.
        status: Identifier,
    },
    /// The account's owner wrote.
    Owner {
        /// To whom.
        role: Option<Identifier>,
        /// What; several messages in order.
        texts: Vec<OwnerText>,
    },
    /// A field that `--channel-wait` looks at became true, or changed.
    Turn {
        /// The tool that said so.
        tool: Identifier,
    },
    /// What `--channel-wait` looks at is over.
    Over {
        /// The tool that said so.
        tool: Identifier,
    },
    /// Fields of a status below `--channel-resource` changed.
    Changed {
        /// The name of the resource.
        name: Option<Identifier>,
        /// The fields and their values now.
        fields: Vec<(Identifier, Identifier)>,
    },
}

impl Event {
    /// The `params` of the notification: `content` and `meta`, whose keys are of `[A-Za-z0-9_]` and whose values are short
    /// texts (others vanish without a word).
    pub fn params(&self) -> String {
        let (content, meta) = self.parts();
        let meta: Map<String, Value> =
            meta.into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect();
        let mut params = Map::new();
        params.insert("content".into(), Value::String(content));
        params.insert("meta".into(), Value::Object(meta));
        Value::Object(params).to_string()
    }

    fn parts(&self) -> (String, Vec<(&'static str, String)>) {
        let mut meta = vec![("event", self.name().to_owned())];
        let mut note = |key: &'static str, value: Option<&Identifier>| {
            meta.extend(value.map(|value| (key, value.to_string())));
        };
        let content = match self {
            Event::Seated { role, team, game } => {
                note("role", role.as_ref());
                note("team", team.as_ref());
                note("match_id", game.as_ref());
                let role = role.as_ref().map(|role| format!(" as {role}")).unwrap_or_default();
                let team = team.as_ref().map(|team| format!(" on team {team}")).unwrap_or_default();
                format!("You are seated{role}{team}: the match begins.")
            }
            Event::Ended { role, outcome, game } => {
                note("role", role.as_ref());
                note("outcome", outcome.as_ref());
                note("match_id", game.as_ref());
                let role = role.as_ref().map(|role| format!(" for {role}")).unwrap_or_default();
                let outcome = outcome.as_ref().map(|outcome| format!(": {outcome}")).unwrap_or_default();
                format!("The match is over{role}{outcome}.")
            }
            Event::Approval { kind, version, status } => {
                note("kind", Some(kind));
                note("version", version.as_ref());
                note("status", Some(status));
                let version =
                    version.as_ref().map(|version| format!(" version {version}")).unwrap_or_default();
                format!("An approval was resolved: {kind}{version} is {status}.")
            }
            Event::Owner { role, texts } => {
                note("role", role.as_ref());
                let texts: Vec<&str> = texts.iter().map(OwnerText::as_str).collect();
                match texts.as_slice() {
                    [text] => format!("The owner of the account wrote: {text}"),
                    _ => format!("The owner of the account wrote:\n- {}", texts.join("\n- ")),
                }
            }
            Event::Turn { tool } => {
                note("tool", Some(tool));
                "It is your turn.".to_owned()
            }
            Event::Over { tool } => {
                note("tool", Some(tool));
                "It has ended.".to_owned()
            }
            Event::Changed { name, fields } => {
                note("name", name.as_ref());
                let fields: Vec<_> = fields.iter().map(|(field, value)| format!("{field}={value}")).collect();
                format!("The status changed: {}.", fields.join(", "))
            }
        };
        (content, meta)
    }

    fn name(&self) -> &'static str {
        match self {
            Event::Seated { .. } => "seated",
            Event::Ended { .. } => "match_ended",
            Event::Approval { .. } => "approval_resolved",
            Event::Owner { .. } => "owner_message",
            Event::Turn { .. } => "your_turn",
            Event::Over { .. } => "ended",
            Event::Changed { .. } => "status_changed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<Identifier> {
        Identifier::read(text)
    }

    #[test]
    fn each_event_is_a_sentence_and_short_fields() {
        let owner = |texts: &[&str]| Event::Owner {
            role: None,
            texts: texts.iter().filter_map(|text| OwnerText::read(text)).collect(),
        };
        for (event, expected) in [
            (
                Event::Seated { role: id("runner"), team: id("blue"), game: id("m7") },
                r#"{"content":"You are seated as runner on team blue: the match begins.","meta":{"event":"seated","role":"runner","team":"blue","match_id":"m7"}}"#,
            ),
            (
                Event::Seated { role: None, team: None, game: None },
                r#"{"content":"You are seated: the match begins.","meta":{"event":"seated"}}"#,
            ),
            (
                Event::Ended { role: id("runner"), outcome: id("won"), game: id("m7") },
                r#"{"content":"The match is over for runner: won.","meta":{"event":"match_ended","role":"runner","outcome":"won","match_id":"m7"}}"#,
            ),
            (
                Event::Approval {
                    kind: id("policy").unwrap(),
                    version: id("3"),
                    status: id("approved").unwrap(),
                },
                r#"{"content":"An approval was resolved: policy version 3 is approved.","meta":{"event":"approval_resolved","kind":"policy","version":"3","status":"approved"}}"#,
            ),
            (
                owner(&["go \"left\""]),
                r#"{"content":"The owner of the account wrote: go \"left\"","meta":{"event":"owner_message"}}"#,
            ),
            (
                owner(&["a", "b"]),
                r#"{"content":"The owner of the account wrote:\n- a\n- b","meta":{"event":"owner_message"}}"#,
            ),
            (
                Event::Turn { tool: id("wait_turn").unwrap() },
                r#"{"content":"It is your turn.","meta":{"event":"your_turn","tool":"wait_turn"}}"#,
            ),
        ] {
            let parsed: Value = serde_json::from_str(&event.params()).unwrap();
            assert_eq!(parsed, serde_json::from_str::<Value>(expected).unwrap());
            for (key, value) in parsed["meta"].as_object().unwrap() {
                assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
                assert!(value.as_str().is_some_and(|value| value.len() <= 32), "{key}: {value}");
            }
        }
    }
}
