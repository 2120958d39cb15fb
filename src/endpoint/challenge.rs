//! What an endpoint says beside 401 and 403: `WWW-Authenticate` (RFC 9110 §11.6.1), of which the `Bearer` challenge
//! (RFC 6750 §3, RFC 9728 §5.1) counts.

use http::header::{HeaderMap, WWW_AUTHENTICATE};

/// Scopes of one challenge that are looked at.
const MOST_SCOPES: usize = 64;
/// Bytes of one parameter that are looked at.
const LONGEST_VALUE: usize = 4096;

/// The parameters of a `Bearer` challenge that a client acts on. All of it is the endpoint's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the protected resource's metadata is.
    pub resource_metadata: Option<String>,
    /// The scopes that are needed.
    pub scope: Option<Vec<String>>,
    /// The error's code.
    pub error: Option<String>,
    /// The error in words.
    pub error_description: Option<String>,
}

impl Challenge {
    /// Reads every challenge of every header field. A parameter counts where it is first given.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut found = Challenge::default();
        for text in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()) {
            let mut is_bearer = false;
            for part in parts(text) {
                match part {
                    Part::Scheme(scheme) => is_bearer = scheme.eq_ignore_ascii_case("bearer"),
                    Part::Parameter(name, value) if is_bearer => found.learn(name, value),
                    Part::Parameter(..) => {}
                }
            }
        }
        found
    }

    /// Whether the token is good but not for this (RFC 6750 §3.1).
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn learn(&mut self, name: &str, value: String) {
        if value.len() > LONGEST_VALUE {
            return;
        }
        let slot = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "error" => &mut self.error,
            "error_description" => &mut self.error_description,
            "scope" => {
                self.scope.get_or_insert_with(|| scopes(&value));
                return;
            }
            _ => return,
        };
        slot.get_or_insert(value);
    }
}

/// The scope tokens of a text (RFC 6749 §3.3); what cannot be one is left out.
pub fn scopes(text: &str) -> Vec<String> {
    let is_scope = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let mut all: Vec<String> = Vec::new();
    for scope in text.split(' ').filter(|word| !word.is_empty() && word.bytes().all(is_scope)) {
        if all.len() < MOST_SCOPES && !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

enum Part<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// Schemes and parameters in order. What is no part of the grammar is passed over up to the next comma.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = split_token(rest);
        if word.is_empty() {
            // Neither a scheme nor a parameter begins here.
            match rest.find(',') {
                Some(comma) => rest = rest.get(comma..).unwrap_or_default(),
                None => return parts,
            }
            continue;
        }
        let value = after.trim_start_matches([' ', '\t']);
        match value.strip_prefix('=') {
            // `name = value`; a token68 may end in `=` too, and no parameter that counts has such a value.
            Some(value) => {
                let (value, after) = split_value(value.trim_start_matches([' ', '\t']));
                parts.push(Part::Parameter(word, value));
                rest = after;
            }
            None => {
                parts.push(Part::Scheme(word));
                rest = after;
            }
        }
    }
}

fn split_token(text: &str) -> (&str, &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c);
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A token or a quoted string (RFC 9110 §5.6.4).
fn split_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    // Never closed: where it ends cannot be told.
    (String::new(), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(fields: &[&str]) -> Challenge {
        let headers = fields.iter().map(|text| (WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap()));
        Challenge::read(&headers.collect())
    }

    fn scope(fields: &[&str]) -> Option<String> {
        read(fields).scope.map(|scopes| scopes.join(" "))
    }

    #[test]
    fn every_parameter_is_read() {
        let challenge = read(&[
            r#"Bearer realm="a, b", resource_metadata="https://h/.well-known/x", scope="a b", error=invalid_token, error_description="say \"hi\"""#,
        ]);
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://h/.well-known/x"));
        assert_eq!(challenge.scope, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
        assert_eq!(challenge.error_description.as_deref(), Some("say \"hi\""));
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        for fields in [
            &[r#"Basic realm="scope=\"x\"", Bearer scope="a b""#][..],
            &[r#"Basic realm="x""#, r#"bearer SCOPE="a b""#],
            &[r#"Negotiate abc==, BEARER scope="a b", Digest scope="c""#],
            &[r#"Bearer x_scope="c", scope = "a b""#],
            &[r#"Bearer,scope="a b""#],
            &[r#"Bearer ?, scope="a b""#],
            &[r#"Bearer scope="a b", scope="c""#, r#"Bearer scope="d""#],
        ] {
            assert_eq!(scope(fields).as_deref(), Some("a b"), "{fields:?}");
        }
        for fields in [&[r#"Basic scope="a""#][..], &["Bearer"], &[r#"Bearer scope="a"#], &[""], &["=,=\""]] {
            assert_eq!(scope(fields).as_deref().unwrap_or_default(), "", "{fields:?}");
        }
    }

    #[test]
    fn a_scope_is_no_more_than_a_scope() {
        assert_eq!(scopes("a  b a\tc \u{e9} d\" e"), ["a", "b", "e"]);
        assert_eq!(scopes(&(0..200).map(|n| format!("s{n} ")).collect::<String>()).len(), MOST_SCOPES);
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_to_its_end(text in "[ -~]{0,80}") {
            let _ = read(&[&text]);
        }
    }
}
