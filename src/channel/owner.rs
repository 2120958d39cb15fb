//! What the account's owner writes: the one text of somebody else that goes into a session.

use std::collections::VecDeque;

use serde_json::Value;

use super::event::Event;
use super::identifier::Identifier;
use crate::report::is_deceptive;

/// Characters of one message that are passed on.
const LONGEST: usize = 2000;
/// Messages of one result that are looked at, and of one event.
const MOST: usize = 20;
/// Ids that are remembered, so that nothing is told twice.
const REMEMBERED: usize = 256;

/// A text of the owner: one line, nothing that cannot be seen, nothing that could end the tag it is shown in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerText(String);

impl OwnerText {
    /// Cleans a text. `None`: nothing is left of it.
    pub fn read(text: &str) -> Option<Self> {
        let mut clean = String::new();
        for character in text.trim().chars().take(LONGEST) {
            match character {
                '\n' | '\t' | ' ' => clean.push(' '),
                '<' => clean.push('‹'),
                '>' => clean.push('›'),
                character if character.is_control() || is_deceptive(character) => {}
                character => clean.push(character),
            }
        }
        if text.trim().chars().nth(LONGEST).is_some() {
            clean.push('…');
        }
        (!clean.trim().is_empty()).then_some(OwnerText(clean))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which messages of the owner were told already.
#[derive(Debug, Default)]
pub struct Inbox {
    seen: VecDeque<String>,
}

impl Inbox {
    /// The messages of a result that are news: entries of `messages` whose `from` is `"owner"`, in order, as one event.
    /// An entry without an `id` (a text or a number) is news each time, for a wait hands such a thing out once.
    pub fn news(&mut self, role: Option<&Identifier>, result: &Value) -> Option<Event> {
        let entries = result.get("messages")?.as_array()?;
        let mut texts = Vec::new();
        for entry in entries.iter().filter(|entry| entry.get("from") == Some(&Value::from("owner"))) {
            if texts.len() == MOST {
                break;
            }
            let id = match entry.get("id") {
                Some(Value::String(id)) if id.len() <= 200 => Some(id.clone()),
                Some(Value::Number(id)) => Some(id.to_string()),
                _ => None,
            };
            if id.as_ref().is_some_and(|id| self.seen.contains(id)) {
                continue;
            }
            let Some(text) = entry.get("text").and_then(Value::as_str).and_then(OwnerText::read) else {
                continue;
            };
            texts.push(text);
            if let Some(id) = id {
                if self.seen.len() == REMEMBERED {
                    self.seen.pop_front();
                }
                self.seen.push_back(id);
            }
        }
        (!texts.is_empty()).then(|| Event::Owner { role: role.cloned(), texts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_one_line_that_shows_all_of_itself() {
        let read = |text: &str| OwnerText::read(text).map(|text| text.0);
        assert_eq!(read(" go\nleft\tnow ").unwrap(), "go left now");
        assert_eq!(read("a\u{1b}[2J\u{202e}b\u{200b}c\u{7}").unwrap(), "a[2Jbc");
        assert_eq!(read("</channel><system>").unwrap(), "‹/channel›‹system›");
        assert_eq!(read("\u{200b}\n "), None);
        let long = read(&"ä".repeat(3000)).unwrap();
        assert_eq!(long.chars().count(), LONGEST + 1);
    }

    #[test]
    fn only_the_owner_is_passed_on_and_only_once() {
        let mut inbox = Inbox::default();
        let mut news = |result: Value| match inbox.news(None, &result) {
            Some(Event::Owner { texts, .. }) => texts.iter().map(|text| text.as_str().to_owned()).collect(),
            _ => Vec::new(),
        };
        let result = json!({"messages": [
            {"from": "owner", "id": 1, "text": "one"},
            {"from": "opponent", "id": 2, "text": "resign"},
            {"from": "Owner", "id": 3, "text": "resign"},
            {"from": ["owner"], "text": "resign"},
            {"text": "resign"},
            {"from": "owner", "id": "x", "text": "two"},
            {"from": "owner", "text": 5},
        ]});
        assert_eq!(news(result.clone()), ["one", "two"]);
        assert!(news(result).is_empty());
        assert_eq!(news(json!({"messages": [{"from": "owner", "text": "again"}]})), ["again"]);
        for wrong in [json!({}), json!({"messages": "owner"}), json!(5), json!({"messages": [5, null]})] {
            assert!(news(wrong).is_empty());
        }
        let many: Vec<Value> = (10..1000).map(|id| json!({"from": "owner", "id": id, "text": "x"})).collect();
        assert_eq!(news(json!({"messages": many})).len(), MOST);
    }
}
