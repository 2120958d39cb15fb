//! How a connection to the endpoint comes about: TCP, through a proxy where there is one, then TLS.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use tower_service::Service;

use super::EndpointUrl;

/// How long a connection may take to come about. There is no other time limit: a call may last 15 minutes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A peer that is gone without a word is noticed within a minute, even while a long call is silent.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 3;
/// What was sent and is not acknowledged for so long is lost (RFC 5482). Linux alone has it.
#[cfg(target_os = "linux")]
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

/// A connection that is up, whatever it goes through.
pub(super) type Stream = Box<dyn ReadWrite>;

/// Both directions of a connection.
pub(super) trait ReadWrite: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> ReadWrite for T {}

/// Why there is no connection. The innermost source is what a person can act on.
pub(super) type Unreachable = Box<dyn std::error::Error + Send + Sync>;

type Tls = HttpsConnector<HttpConnector>;

/// The way to one endpoint.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    uri: Uri,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Plain(HttpConnector),
    Tls(Tls),
    /// TLS to the endpoint inside a tunnel (RFC 9110 §9.3.6), itself inside TLS where the proxy's URL is https.
    Proxy(Box<HttpsConnector<Tunnel<Tls>>>),
}

impl Connector {
    /// Trusts the system's roots and `extra_roots`; takes the proxy that the environment or the system names.
    pub(super) fn new(
        url: &EndpointUrl,
        extra_roots: Vec<CertificateDer<'static>>,
    ) -> Result<Self, rustls::Error> {
        let uri = url.as_uri().clone();
        let way = if url.is_plain_http() {
            // Reading the certificate store costs milliseconds, and there is nothing to verify.
            Way::Plain(tcp())
        } else {
            let proxy = if url.is_loopback() { None } else { Matcher::from_system().intercept(&uri) };
            through(proxy.as_ref(), tls_config(extra_roots)?)
        };
        Ok(Connector { uri, way })
    }

    /// Connects.
    pub(super) async fn connect(&self) -> Result<Stream, Unreachable> {
        let connecting = async {
            match self.way.clone() {
                Way::Plain(way) => go(way, self.uri.clone()).await,
                Way::Tls(way) => go(way, self.uri.clone()).await,
                Way::Proxy(way) => go(*way, self.uri.clone()).await,
            }
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()).into()),
        }
    }
}

fn through(proxy: Option<&Intercept>, config: rustls::ClientConfig) -> Way {
    let Some(proxy) = proxy else {
        let mut way = HttpsConnector::from((tcp(), config));
        way.enforce_https();
        return Way::Tls(way);
    };
    let mut to_proxy = config.clone();
    to_proxy.alpn_protocols.clear();
    let mut tunnel = Tunnel::new(proxy.uri().clone(), HttpsConnector::from((tcp(), to_proxy)));
    if let Some(credentials) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(credentials.clone());
    }
    let mut way = HttpsConnector::from((tunnel, config));
    way.enforce_https();
    Way::Proxy(Box::new(way))
}

async fn go<S>(mut way: S, uri: Uri) -> Result<Stream, Unreachable>
where
    S: Service<Uri, Response: ReadWrite + 'static, Error: Into<Unreachable>>,
{
    poll_fn(|context| way.poll_ready(context)).await.map_err(Into::into)?;
    Ok(Box::new(way.call(uri).await.map_err(Into::into)?))
}

/// Happy Eyeballs (RFC 8305) is on by default.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    // Whether it may be http has been decided with the URL.
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(ACKNOWLEDGED_WITHIN));
    tcp
}

/// TLS 1.2 and 1.3 with ring, verified as the system verifies; only HTTP/1.1 is offered (RFC 7301).
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn tls_config(extra_roots: Vec<CertificateDer<'static>>) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra_roots, Arc::clone(&provider))?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        // "Dangerous" is to bring a verifier of one's own; this one is the system's.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
