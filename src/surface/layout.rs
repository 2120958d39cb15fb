//! Canonical texts laid out for people: one member a line, nothing in them that a reader cannot see.

use std::fmt::Write as _;

use crate::report::is_deceptive;

/// A JSON text with its invisible and reordering characters as `\u` escapes. They can stand in strings alone, so that it
/// means the same as before.
pub fn spelled_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    json.chars().for_each(|character| push_spelled_out(character, &mut out));
    out
}

fn push_spelled_out(character: char, out: &mut String) {
    if !is_deceptive(character) {
        out.push(character);
        return;
    }
    for unit in character.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// A text in canonical form over several lines, spelled out, each line after the first behind `depth` steps of two
/// spaces. Its canonical form is the text again.
pub fn push_lines(canonical: &str, depth: usize, out: &mut String) {
    let mut depth = depth;
    let mut in_string = false;
    let mut characters = canonical.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            push_spelled_out(character, out);
            match character {
                '"' => in_string = false,
                // What is escaped is one character at least, and if it is a quote it ends nothing.
                '\\' => out.extend(characters.next()),
                _ => {}
            }
            continue;
        }
        match character {
            '{' | '[' => {
                out.push(character);
                // An empty one stays on its line.
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    push_line_break(depth, out);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                push_line_break(depth, out);
                out.push(character);
            }
            ',' => {
                out.push(',');
                push_line_break(depth, out);
            }
            ':' => out.push_str(": "),
            _ => {
                in_string = character == '"';
                out.push(character);
            }
        }
    }
}

/// Steps behind which no line begins: a deep value would else be mostly spaces, many times its own size.
const MAX_STEPS: usize = 24;

/// A new line that begins behind so many steps of two spaces.
pub fn push_line_break(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(MAX_STEPS)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::canon::canonical;

    #[test]
    fn one_member_stands_on_one_line() {
        let text = r#"{"a":[1,{"b":"x:\"{,"}],"c":{},"d":[],"e":"\\"}"#;
        let mut out = String::new();
        push_lines(text, 1, &mut out);
        let lines = [
            "{",
            "    \"a\": [",
            "      1,",
            "      {",
            "        \"b\": \"x:\\\"{,\"",
            "      }",
            "    ],",
            "    \"c\": {},",
            "    \"d\": [],",
            "    \"e\": \"\\\\\"",
            "  }",
        ];
        assert_eq!(out, lines.join("\n"));
        assert_eq!(canonical(&out).unwrap(), text);
    }

    #[test]
    fn what_cannot_be_seen_is_spelled_out_and_means_the_same() {
        let text = "\"a\u{200b}\u{202e}\u{e0041}\u{7f}\\u0000\\n\u{e9}\"";
        let seen = spelled_out(text);
        assert_eq!(seen, "\"a\\u200b\\u202e\\udb40\\udc41\\u007f\\u0000\\n\u{e9}\"");
        assert_eq!(canonical(&seen).unwrap(), text);
    }
}
