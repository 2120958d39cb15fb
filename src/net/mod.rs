//! The only HTTP client builder: no redirects, no cookies, our trust roots, no proxy for loopback.

pub mod url;

use std::time::Duration;

use reqwest::{Certificate, Client, redirect};

pub use url::EndpointUrl;

/// How long a connection may take to come about. There is no other time limit: a call may last 15 minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Builds the client for one endpoint. Trusts the system's roots and `extra_roots`.
///
/// # Errors
/// The system has no usable certificate store, or an extra root is not a certificate.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn client(url: &EndpointUrl, extra_roots: Vec<Certificate>) -> Result<Client, reqwest::Error> {
    // Fails when a provider is there already, which is what we want.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(256)
        .user_agent(concat!("mcp-hasp/", env!("CARGO_PKG_VERSION")));
    builder = if url.is_plain_http() {
        // Reading the certificate store costs milliseconds, and there is nothing to verify.
        builder.tls_certs_only([])
    } else {
        builder.https_only(true).tls_certs_merge(extra_roots)
    };
    if url.is_loopback() {
        builder = builder.no_proxy();
    }
    builder.build()
}
