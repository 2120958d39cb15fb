//! The id of a message that is too large to keep: found while its bytes pass by.
//!
//! Without it the harness would wait for an answer that cannot be addressed to it.

use super::parse::is_id;

/// An id longer than this is given up.
const LONGEST_ID: usize = 256;

/// The state of one message passing by.
#[derive(Debug, Default)]
pub struct Skim {
    depth: usize,
    in_string: bool,
    escaped: bool,
    place: Place,
    key: Vec<u8>,
    id: Vec<u8>,
    found: bool,
}

/// Where in the outermost object we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Key,
    AfterKey,
    Value,
}

impl Skim {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.found {
                return;
            }
            self.step(byte);
        }
    }

    /// The id's own text, if one was found.
    pub fn into_id(self) -> Option<String> {
        let id = String::from_utf8(self.id).ok().filter(|_| self.found)?;
        is_id(id.trim()).then(|| id.trim().to_owned())
    }

    fn step(&mut self, byte: u8) {
        let outermost = self.depth == 1;
        if self.in_string {
            self.keep(byte, outermost);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_string = false;
                    if outermost && self.place == Place::Key {
                        self.place = Place::AfterKey;
                    }
                }
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte, outermost);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_of_value(outermost);
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => self.end_of_value(outermost),
            b':' if outermost => self.place = Place::Value,
            _ => self.keep(byte, outermost),
        }
    }

    fn keep(&mut self, byte: u8, outermost: bool) {
        let kept = match self.place {
            Place::Key => &mut self.key,
            Place::Value if self.key.trim_ascii() == b"\"id\"" => &mut self.id,
            _ => return,
        };
        if outermost && kept.len() < LONGEST_ID {
            kept.push(byte);
        }
    }

    fn end_of_value(&mut self, outermost: bool) {
        if !outermost {
            return;
        }
        self.found = self.place == Place::Value && self.key.trim_ascii() == b"\"id\"";
        if !self.found {
            self.place = Place::Key;
            self.key.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<String> {
        let mut skim = Skim::default();
        for chunk in text.as_bytes().chunks(3) {
            skim.feed(chunk);
        }
        skim.into_id()
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        for (text, found) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":1}}"#, Some("7")),
            (
                r#"{"method":"x","params":{"id":1,"a":[{"id":2}],"b":"\"id\":3,"},"jsonrpc":"2.0", "id" : "a\"b" }"#,
                Some(r#""a\"b""#),
            ),
            (
                r#"{"params":"id","id":123456789012345678901234567890}"#,
                Some("123456789012345678901234567890"),
            ),
            (r#"{"method":"notifications/x","params":{"id":1}}"#, None),
            (r#"{"id":{"id":1}}"#, None),
            (r#"{"id":null}"#, None),
            (r#"[{"id":1}]"#, None),
            ("not json at all", None),
            (r#"{"id":7"#, None),
        ] {
            assert_eq!(id(text).as_deref(), found, "{text}");
        }
        assert_eq!(id(&format!(r#"{{"id":"{}"}}"#, "x".repeat(LONGEST_ID))), None);
    }
}
