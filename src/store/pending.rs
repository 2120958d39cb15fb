//! What is stored of a sign-in that is under way.

use serde::{Deserialize, Serialize};

use super::exposed;
use super::record::Client;
use crate::secret::{CodeVerifier, Secret};

/// All that another process needs to go on with a sign-in, once the one that began it is gone: the browser tab that is
/// open still leads to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// `state` (RFC 6749 §4.1.1)
    #[serde(with = "exposed")]
    pub state: Secret,
    /// `code_verifier` (RFC 7636 §4.1)
    #[serde(with = "exposed")]
    pub verifier: CodeVerifier,
    /// Where the browser is sent back to.
    pub redirect_uri: String,
    /// The authorization request: the URL that the browser was given, whole.
    #[serde(with = "exposed")]
    pub link: Secret,
    /// The authorization server, as its validated metadata spells itself (RFC 8414 §2).
    pub issuer: String,
    /// Whether it announced that it names itself in the response (RFC 9207 §3).
    pub issuer_announced: bool,
    /// What the tokens will be for (RFC 8707).
    pub resource: String,
    /// Who we are there.
    pub client: Client,
    /// Where the code is exchanged.
    pub token_endpoint: String,
    /// Where tokens are revoked (RFC 7009), if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The scopes that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// When it is given up, in milliseconds since 1970; 0: it ended without success.
    pub until: u64,
}
