//! How a connection comes about: TCP, through a proxy where there is one, then TLS.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use tower_service::Service;

use super::EndpointUrl;
use super::guard::{NamedUrl, Reach};
use super::resolve::{Admitted, Resolver};
use crate::report::visible;

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

type Tcp = HttpConnector<Resolver>;
type Tls = HttpsConnector<Tcp>;

/// The way to one URL.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    uri: Uri,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Plain(Tcp),
    Tls(Tls),
    /// TLS to the host inside a tunnel (RFC 9110 §9.3.6), itself inside TLS where the proxy's URL is https.
    Proxy(Box<HttpsConnector<Tunnel<Tls>>>),
}

impl Connector {
    /// To the endpoint. Trusts the system's roots and `extra_roots`; takes the proxy that the environment or the system
    /// names.
    pub(super) fn new(
        url: &EndpointUrl,
        extra_roots: Vec<CertificateDer<'static>>,
    ) -> Result<Self, rustls::Error> {
        Connector::to(url.as_uri(), url.is_loopback(), Admitted::All, || tls_config(extra_roots))
    }

    /// To a URL that somebody else named, and no further than `reach`.
    pub(super) fn guarded(
        url: &NamedUrl,
        reach: Reach,
        tls: impl FnOnce() -> Result<Arc<rustls::ClientConfig>, rustls::Error>,
    ) -> Result<Self, rustls::Error> {
        Connector::to(url.as_uri(), url.is_loopback(), Admitted::of(url, reach), tls)
    }

    fn to(
        uri: &Uri,
        loopback: bool,
        admitted: Admitted,
        tls: impl FnOnce() -> Result<Arc<rustls::ClientConfig>, rustls::Error>,
    ) -> Result<Self, rustls::Error> {
        let way = if uri.scheme() == Some(&Scheme::HTTP) {
            // Reading the certificate store costs milliseconds, and there is nothing to verify.
            Way::Plain(tcp(Resolver::new(admitted)))
        } else {
            let proxy = if loopback { None } else { proxy_for(uri) };
            through(proxy.as_ref(), admitted, tls()?)
        };
        Ok(Connector { uri: uri.clone(), way })
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

/// The proxy that the environment or the system names for a URL.
pub(super) fn proxy_for(uri: &Uri) -> Option<Intercept> {
    Matcher::from_system().intercept(uri)
}

/// What a person can act on is the innermost cause: refused, unknown host, unknown issuer.
pub fn cause(why: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = why;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    visible(&cause.to_string(), 200)
}

fn through(proxy: Option<&Intercept>, admitted: Admitted, config: Arc<rustls::ClientConfig>) -> Way {
    let Some(proxy) = proxy else {
        let mut way = HttpsConnector::from((tcp(Resolver::new(admitted)), config));
        way.enforce_https();
        return Way::Tls(way);
    };
    // The proxy resolves the name, and nobody here learns where it leads: what is not admitted is kept away by the check
    // of the URL alone. The proxy itself is the user's choice.
    let tcp = tcp(Resolver::new(Admitted::All));
    let mut to_proxy = rustls::ClientConfig::clone(&config);
    to_proxy.alpn_protocols.clear();
    let mut tunnel = Tunnel::new(proxy.uri().clone(), HttpsConnector::from((tcp, to_proxy)));
    if let Some(credentials) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(credentials.clone());
    }
    let mut way = HttpsConnector::from((tunnel, config));
    way.enforce_https();
    Way::Proxy(Box::new(way))
}

pub(super) async fn go<S>(mut way: S, uri: Uri) -> Result<Stream, Unreachable>
where
    S: Service<Uri, Response: ReadWrite + 'static, Error: Into<Unreachable>>,
{
    poll_fn(|context| way.poll_ready(context)).await.map_err(Into::into)?;
    Ok(Box::new(way.call(uri).await.map_err(Into::into)?))
}

/// Happy Eyeballs (RFC 8305) is on by default.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn tcp<R>(resolver: R) -> HttpConnector<R> {
    let mut tcp = HttpConnector::new_with_resolver(resolver);
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
pub(super) fn tls_config(
    extra_roots: Vec<CertificateDer<'static>>,
) -> Result<Arc<rustls::ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra_roots, Arc::clone(&provider))?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        // "Dangerous" is to bring a verifier of one's own; this one is the system's.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
