//! What is stored of one sign-in.

use serde::{Deserialize, Serialize};

use super::exposed;
use crate::secret::{AccessToken, ClientSecret, RefreshToken};

/// A sign-in at one endpoint: whom it is with, as which client, and what came of it. Enough to renew its tokens without
/// asking anybody for metadata again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The authorization server, as its validated metadata spells itself (RFC 8414 §2).
    pub issuer: String,
    /// What the tokens are for, as it was first sent (RFC 8707).
    pub resource: String,
    /// Who we are there.
    pub client: Client,
    /// Where tokens are renewed.
    pub token_endpoint: String,
    /// Where tokens are revoked (RFC 7009), if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// When the user signed in, in milliseconds since 1970: tells one sign-in from the next.
    #[serde(default)]
    pub signed_in_at: u64,
    /// The scopes that the last sign-in asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The scopes that were granted, where the server said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// Scopes that the endpoint found missing since; the next sign-in asks for them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The tokens; none once they are known to be dead. The registration is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}

/// A client as an authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// `client_id`
    pub id: String,
    /// `client_secret`, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "exposed::optional")]
    pub secret: Option<ClientSecret>,
    /// When the secret ends, in seconds since 1970; never where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_expires_at: Option<u64>,
    /// How it authenticates itself.
    pub authentication: ClientAuthentication,
    /// Where its id comes from.
    pub origin: ClientOrigin,
    /// The redirect URI it was registered with, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
}

/// `token_endpoint_auth_method` (RFC 7591 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientAuthentication {
    /// Not at all; `client_id` is in the body.
    #[serde(rename = "none")]
    None,
    /// Id and secret in the body.
    #[serde(rename = "client_secret_post")]
    Post,
    /// Id and secret in the header (RFC 6749 §2.3.1).
    #[serde(rename = "client_secret_basic")]
    Basic,
}

/// Where a client id comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientOrigin {
    /// The user gave it.
    Given,
    /// It is the URL of a client id metadata document.
    Document,
    /// It was registered (RFC 7591).
    Registered,
}

/// What a token endpoint answered. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// For the endpoint.
    #[serde(with = "exposed")]
    pub access: AccessToken,
    /// For the next ones.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "exposed::optional")]
    pub refresh: Option<RefreshToken>,
    /// When they came.
    pub obtained_at: u64,
    /// When the access token ends, where the server said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}
