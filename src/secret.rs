//! Values that must never be printed: no `Display`, a redacted `Debug`, wiped when dropped.

use std::fmt;

use zeroize::Zeroizing;

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a secret over.
    pub fn new(text: String) -> Self {
        Secret(Zeroizing::new(text))
    }

    /// The one way to read it.
    pub fn expose_secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// The bearer token (RFC 6750) for the one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken(pub Secret);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let token = AccessToken(Secret::new("hunter2".into()));
        assert!(!format!("{token:?} {token:#?}").contains("hunter2"));
    }
}
