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

/// Renews an access token, once (RFC 6749 §1.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshToken(pub Secret);

/// What a confidential client authenticates itself with (RFC 6749 §2.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSecret(pub Secret);

/// What a redirect brings, to be exchanged for tokens once (RFC 6749 §4.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationCode(pub Secret);

/// What the code challenge was made from (RFC 7636 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeVerifier(pub Secret);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let token = AccessToken(Secret::new("hunter2".into()));
        assert!(!format!("{token:?} {token:#?}").contains("hunter2"));
    }
}
