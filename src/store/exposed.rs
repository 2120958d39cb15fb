//! Secrets as text: into the files of the store and out of them, and nowhere else.

use std::io;

use serde::{Deserialize as _, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::secret::{AccessToken, ClientSecret, CodeVerifier, RefreshToken, Secret};

/// The kinds of secrets that are stored.
pub(super) trait Stored: Sized {
    /// Makes one of its text.
    fn new(secret: Secret) -> Self;
    /// Its text.
    fn secret(&self) -> &Secret;
}

impl Stored for Secret {
    fn new(secret: Secret) -> Self {
        secret
    }

    fn secret(&self) -> &Secret {
        self
    }
}

macro_rules! stored {
    ($($kind:ident),*) => {
        $(impl Stored for $kind {
            fn new(secret: Secret) -> Self {
                $kind(secret)
            }

            fn secret(&self) -> &Secret {
                &self.0
            }
        })*
    };
}

stored!(AccessToken, RefreshToken, ClientSecret, CodeVerifier);

pub(super) fn serialize<K: Stored, S: Serializer>(value: &K, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(value.secret().expose_secret())
}

pub(super) fn deserialize<'de, K: Stored, D: Deserializer<'de>>(input: D) -> Result<K, D::Error> {
    Ok(K::new(Secret::new(String::deserialize(input)?)))
}

/// The same for what may be missing.
pub(super) mod optional {
    use super::{Deserializer, Secret, Serializer, Stored};
    use serde::Deserialize as _;

    pub(in super::super) fn serialize<K: Stored, S: Serializer>(
        value: &Option<K>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(kind) => super::serialize(kind, out),
            None => out.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, K: Stored, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<K>, D::Error> {
        Ok(Option::<String>::deserialize(input)?.map(|text| K::new(Secret::new(text))))
    }
}

/// A value as the text of a file. It is measured first: a buffer that grows leaves copies of what was in it.
pub(super) fn text_of(value: &impl Serialize) -> io::Result<Zeroizing<String>> {
    let mut length = Length(0);
    serde_json::to_writer_pretty(&mut length, value)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(length.0.saturating_add(1)));
    serde_json::to_writer_pretty(&mut *bytes, value)?;
    bytes.push(b'\n');
    let text = String::from_utf8(std::mem::take(&mut *bytes));
    text.map(Zeroizing::new).map_err(|_| io::ErrorKind::InvalidData.into())
}

struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
