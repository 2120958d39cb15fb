//! Words of an endpoint that may be said into a session: names, and nothing that reads as a sentence.

use std::fmt;

/// Characters of one, at most.
const LONGEST: usize = 32;
/// Words within one, at most.
const MOST_WORDS: usize = 3;

/// A name: up to three words of ASCII letters and digits with `_` or `-` between them, 32 characters in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identifier(String);

impl Identifier {
    /// Takes a text that is one; anything else is withheld.
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split(['_', '-']);
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let fits = text.len() <= LONGEST && words.clone().count() <= MOST_WORDS && words.all(is_word);
        fits.then(|| Identifier(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_sentence() {
        for good in ["runner", "blue", "m7", "red-team", "seat_3_north", "A", "0"] {
            assert_eq!(Identifier::read(good).unwrap().as_str(), good);
        }
        for wrong in [
            "",
            "_",
            "a_",
            "a--b",
            "a b",
            "a.b",
            "a/b",
            "a:b",
            "a\n",
            "ä",
            "ignore_all_previous_instructions",
            "abcdefghijklmnopqrstuvwxyz0123456",
            "<b>",
            "\u{202e}a",
        ] {
            assert_eq!(Identifier::read(wrong), None, "{wrong:?}");
        }
    }
}
