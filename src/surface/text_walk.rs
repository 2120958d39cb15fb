//! Every text in a canonical JSON text, with its place: in one pass, however deep.

use crate::report::visible;
use crate::wire::json;

/// The way to a value: names and positions.
#[derive(Debug, Default)]
pub(super) struct Path<'a>(Vec<Step<'a>>);

#[derive(Debug)]
enum Step<'a> {
    /// In an object, at the member with this raw name.
    Member(&'a str),
    /// In an array.
    Position(usize),
}

impl Path<'_> {
    /// Names joined by dots, positions in brackets, not much longer than `limit`.
    pub(super) fn to_text(&self, limit: usize) -> String {
        let mut text = String::new();
        for step in &self.0 {
            if text.len() > limit {
                break;
            }
            match step {
                Step::Member(raw) => {
                    let dot = if text.is_empty() { "" } else { "." };
                    let name = json::decode_string(raw).unwrap_or_default();
                    text.extend([dot, &visible(&name, limit)]);
                }
                Step::Position(at) => text.push_str(&format!("[{at}]")),
            }
        }
        text
    }
}

/// Hands over every text of a canonical JSON text: the text, its place, and whether it is the name of a member.
pub(super) fn texts<'a>(canonical: &'a str, mut each: impl FnMut(&str, &Path<'a>, bool)) {
    let mut path = Path::default();
    let mut rest = canonical;
    // A text is a name where an object has begun or a comma stands in one.
    let mut name_next = false;
    while let Some(sign) = rest.bytes().next() {
        if sign == b'"' {
            let (raw, after) = rest.split_at(json::string_length(rest.as_bytes()));
            rest = after;
            if name_next && let Some(Step::Member(name)) = path.0.last_mut() {
                *name = raw;
            }
            if let Some(text) = json::decode_string(raw) {
                each(&text, &path, name_next);
            }
            name_next = false;
            continue;
        }
        match sign {
            b'{' => {
                path.0.push(Step::Member(""));
                name_next = true;
            }
            b'[' => path.0.push(Step::Position(0)),
            b'}' | b']' => {
                path.0.pop();
                name_next = false;
            }
            b',' => match path.0.last_mut() {
                Some(Step::Position(at)) => *at += 1,
                _ => name_next = true,
            },
            _ => {}
        }
        let mut after = rest.chars();
        after.next();
        rest = after.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_found_with_its_place() {
        let text = r#"{"a":"x","b":[1,"y\"}",{"c.d":["z"]},{}],"e\n":{"":null},"f":"é"}"#;
        let mut seen = Vec::new();
        texts(text, |text, path, is_name| {
            if !is_name {
                seen.push((path.to_text(99), text.to_owned()));
            }
        });
        let expected = [("a", "x"), ("b[1]", "y\"}"), ("b[2].c.d[0]", "z"), ("f", "é")];
        assert_eq!(seen, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
        let mut names = Vec::new();
        texts(text, |text, path, is_name| {
            if is_name {
                names.push((path.to_text(99), text.to_owned()));
            }
        });
        assert_eq!(names[3], ("e\\u{a}".into(), "e\n".into()));
        let mut alone = Vec::new();
        texts("\"x\"", |text, path, is_name| alone.push((text.to_owned(), path.to_text(9), is_name)));
        assert_eq!(alone, [("x".to_owned(), String::new(), false)]);
    }
}
