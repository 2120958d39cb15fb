//! The hash that an endpoint declares of itself: `surfaceHash` in `_meta`, plain or below a namespace.

use crate::wire::{Object, json};

/// What an endpoint declared, and under which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredHash {
    /// The key in `_meta`.
    pub key: String,
    /// The value, opaque: compared as it stands.
    pub value: String,
}

/// A result that does not carry the hash that was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// None at all.
    Missing,
    /// Another one, or something that is none.
    Differs {
        /// The raw JSON that stands there.
        found: String,
    },
}

/// The last segment of a key that holds a surface hash.
const LAST_SEGMENT: &str = "surfaceHash";

/// Whether a key of `_meta` holds a surface hash.
fn is_key(key: &str) -> bool {
    key.strip_suffix(LAST_SEGMENT).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with(['/', '.']))
}

impl DeclaredHash {
    /// Reads it from a `_meta`.
    ///
    /// # Errors
    /// It is there, but not as one text under one key.
    pub fn read(meta: &Object<'_>) -> Result<Option<Self>, String> {
        let mut found = None;
        for member in meta.members().filter(|member| is_key(&member.key)) {
            let key = json::quote(&member.key);
            let value = json::decode_string(member.value)
                .ok_or_else(|| format!("the declared hash under {key} is no text"))?;
            if value.is_empty() {
                return Err(format!("the declared hash under {key} is empty"));
            }
            let hash = DeclaredHash { key: member.key.into_owned(), value: value.into_owned() };
            if let Some(DeclaredHash { key: other, .. }) = found.replace(hash) {
                return Err(format!("a hash is declared under two keys, {} and {key}", json::quote(&other)));
            }
        }
        Ok(found)
    }

    /// A `_meta` that must carry this hash under its key, and no other one anywhere.
    ///
    /// # Errors
    /// It does not.
    pub fn check(&self, meta: &Object<'_>) -> Result<(), Departure> {
        self.check_if_there(meta)?;
        match meta.get(&self.key) {
            Some(_) => Ok(()),
            None => Err(Departure::Missing),
        }
    }

    /// A `_meta` (or error `data`) that may lack a hash; one that is there must be this one.
    ///
    /// # Errors
    /// It is another one.
    pub fn check_if_there(&self, meta: &Object<'_>) -> Result<(), Departure> {
        let other = meta
            .members()
            .filter(|member| is_key(&member.key))
            .find(|member| json::decode_string(member.value).as_deref() != Some(&self.value));
        match other {
            None => Ok(()),
            Some(member) => Err(Departure::Differs { found: member.value.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<DeclaredHash>, String> {
        DeclaredHash::read(&Object::read(text).unwrap())
    }

    #[test]
    fn one_text_under_one_key_is_a_declaration() {
        for (text, key) in [
            (r#"{"surfaceHash":"a","x":1}"#, "surfaceHash"),
            (r#"{"com.example/surfaceHash":"a"}"#, "com.example/surfaceHash"),
            (r#"{"com.example.surfaceHash":"\u0061"}"#, "com.example.surfaceHash"),
        ] {
            assert_eq!(
                read(text).unwrap(),
                Some(DeclaredHash { key: key.into(), value: "a".into() }),
                "{text}"
            );
        }
        assert_eq!(read(r#"{"mysurfaceHash":"a","surfaceHashes":"b","surfaceHash/x":"c"}"#).unwrap(), None);
    }

    #[test]
    fn an_unclear_declaration_is_none() {
        for (text, why) in [
            (r#"{"surfaceHash":""}"#, "empty"),
            (r#"{"surfaceHash":7}"#, "no text"),
            (r#"{"surfaceHash":null}"#, "no text"),
            (r#"{"surfaceHash":"a","x/surfaceHash":"a"}"#, "two keys"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn a_hash_that_is_there_counts_wherever_it_stands() {
        let pinned = DeclaredHash { key: "x/surfaceHash".into(), value: "a".into() };
        let check = |text: &str| pinned.check(&Object::read(text).unwrap());
        let differs = |found: &str| Err(Departure::Differs { found: found.into() });
        assert_eq!(check(r#"{"x/surfaceHash":"\u0061"}"#), Ok(()));
        assert_eq!(check("{}"), Err(Departure::Missing));
        assert_eq!(check(r#"{"surfaceHash":"a"}"#), Err(Departure::Missing));
        assert_eq!(check(r#"{"x/surfaceHash":"A"}"#), differs("\"A\""));
        assert_eq!(check(r#"{"x/surfaceHash":["a"]}"#), differs("[\"a\"]"));
        assert_eq!(check(r#"{"x/surfaceHash":"a","surfaceHash":"b"}"#), differs("\"b\""));
        let check = |text: &str| pinned.check_if_there(&Object::read(text).unwrap());
        assert_eq!(check("{}"), Ok(()));
        assert_eq!(check(r#"{"surfaceHash":"b"}"#), differs("\"b\""));
    }
}
