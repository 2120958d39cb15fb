//! Signing in: OAuth 2.1 as the MCP authorization pages ask for it, and keeping what came of it.
//!
//! In the order of a first sign-in: [`resource`] which authorization server the endpoint names, [`metadata`] what that
//! server says of itself, [`registration`] who we are there, [`attempt`] the request and what its answer is worth,
//! [`callback`] the redirect ([`page`] what the browser shows, [`browser`] how it gets there), [`token_endpoint`] codes and
//! refresh tokens into access tokens. [`asking`] does all this once for all processes; [`keeper`] gives out the token for
//! each request and renews it; [`ending`] signs out.

pub mod asking;
pub mod attempt;
pub mod browser;
pub mod callback;
mod document;
pub mod ending;
pub mod keeper;
pub mod metadata;
pub mod page;
pub mod registration;
pub mod resource;
pub mod token_endpoint;

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use url::Url;

use crate::endpoint::SignInTrouble;
use crate::secret::ClientSecret;
use crate::store::StoreProblem;

pub use keeper::Keeper;

/// What the user says about signing in.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--client-id`
    pub client_id: Option<String>,
    /// `--client-secret-file`
    pub client_secret: Option<ClientSecret>,
    /// `--client-metadata-url`: the client id is the URL of a document that describes the client.
    pub client_metadata_url: Option<Url>,
    /// `--scope`: in place of what the endpoint asks for.
    pub scope: Option<Vec<String>>,
    /// `--callback-port`
    pub callback_port: Option<u16>,
    /// `--issuer`: that authorization server alone.
    pub issuer: Option<String>,
    /// `--resource`: in place of what the endpoint calls itself.
    pub resource: Option<String>,
    /// Not `--no-browser`.
    pub opens_browser: bool,
    /// What to say where the browser is probably on another machine; `PORT` stands for the port.
    pub elsewhere: Option<String>,
    /// Roots trusted beside the system's.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

/// Why there is no token, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of trouble it is.
    pub kind: SignInTrouble,
    /// What is wrong, whose fault it is, and what to do.
    pub why: String,
    /// Seconds to wait, where the server said.
    pub retry_after: Option<u64>,
}

impl Problem {
    fn failed(why: impl Into<String>) -> Self {
        Problem { kind: SignInTrouble::Failed, why: why.into(), retry_after: None }
    }

    fn passing(why: impl Into<String>, retry_after: Option<u64>) -> Self {
        Problem { kind: SignInTrouble::Passing, why: why.into(), retry_after }
    }
}

impl From<StoreProblem> for Problem {
    fn from(problem: StoreProblem) -> Self {
        Problem { kind: SignInTrouble::Store, why: problem.to_string(), retry_after: None }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
