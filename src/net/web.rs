//! Requests to URLs that an endpoint or an authorization server names. They carry what they are given and nothing else:
//! no token of the endpoint, none of its headers, no cookie.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue,
    LOCATION, USER_AGENT,
};
use http::{Method, Request};
use http_body_util::Full;
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use super::connect::{Connector, cause, tls_config};
use super::guard::{NamedUrl, Reach};
use super::pool::{Body, Client, Lost};
use super::url::without_query;
use super::{OUR_NAME, retry_after};
use crate::report::visible;

/// For documents.
const GET: Limits = Limits { bytes: 64 * 1024, seconds: 10 };
/// For registrations and tokens.
const POST: Limits = Limits { bytes: 256 * 1024, seconds: 30 };

/// What an answer may take, in all.
#[derive(Clone, Copy)]
struct Limits {
    bytes: usize,
    seconds: u64,
}

/// The way to whatever an endpoint of some reach names. Each request has a connection of its own.
#[derive(Debug)]
pub struct Web {
    reach: Reach,
    extra_roots: Vec<CertificateDer<'static>>,
    tls: OnceLock<Arc<rustls::ClientConfig>>,
}

/// An answer, whole.
pub struct Fetched {
    /// The status; never a redirect.
    pub status: u16,
    /// Whether it says to be JSON: `application/json`, or a type that ends in `+json`.
    pub is_json: bool,
    /// Seconds to wait before the next request.
    pub retry_after: Option<u64>,
    /// The body. One that is not JSON may be cut off.
    pub body: Zeroizing<Vec<u8>>,
}

/// Why there is no answer to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebTrouble {
    /// No connection came about, so nothing was sent.
    Unreachable(String),
    /// The connection broke before the answer was whole. The request may have arrived.
    Broken,
    /// No whole answer in time. The request may have arrived.
    TimedOut {
        /// The limit in seconds.
        seconds: u64,
    },
    /// The answer is larger than it may be.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A redirect, which is never followed.
    Redirect {
        /// The status.
        status: u16,
        /// Origin and path of the target.
        target: Option<String>,
    },
    /// A compressed body, which we did not ask for.
    Encoded,
}

impl Web {
    /// Trusts the system's roots and `extra_roots`. Opens and reads nothing yet.
    pub fn new(reach: Reach, extra_roots: Vec<CertificateDer<'static>>) -> Self {
        Web { reach, extra_roots, tls: OnceLock::new() }
    }

    /// How far it leads.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Asks for a JSON document.
    ///
    /// # Errors
    /// There is no answer of any status to use.
    pub async fn get(&self, url: &NamedUrl) -> Result<Fetched, WebTrouble> {
        self.send(url, Method::GET, HeaderMap::new(), Bytes::new(), GET).await
    }

    /// Sends a JSON document.
    ///
    /// # Errors
    /// There is no answer of any status to use.
    pub async fn post_json(&self, url: &NamedUrl, body: String) -> Result<Fetched, WebTrouble> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        self.send(url, Method::POST, headers, body.into(), POST).await
    }

    /// Sends a form (`application/x-www-form-urlencoded`), as it is.
    ///
    /// # Errors
    /// There is no answer of any status to use.
    pub async fn post_form(
        &self,
        url: &NamedUrl,
        authorization: Option<HeaderValue>,
        form: Zeroizing<String>,
    ) -> Result<Fetched, WebTrouble> {
        let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, form_type)]);
        if let Some(mut authorization) = authorization {
            authorization.set_sensitive(true);
            headers.insert(AUTHORIZATION, authorization);
        }
        // Wiped when the last reference to it is gone.
        self.send(url, Method::POST, headers, Bytes::from_owner(form), POST).await
    }

    async fn send(
        &self,
        url: &NamedUrl,
        method: Method,
        own: HeaderMap,
        body: Bytes,
        limits: Limits,
    ) -> Result<Fetched, WebTrouble> {
        let deadline = Instant::now() + Duration::from_secs(limits.seconds);
        let connector = Connector::guarded(url, self.reach, || self.tls());
        let client = Client::through(connector.map_err(|error| WebTrouble::Unreachable(cause(&error)))?);
        // Apart from the rest, because until then nothing is sent.
        let connection = match timeout_at(deadline, Box::pin(client.connect())).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(why)) => return Err(WebTrouble::Unreachable(cause(&*why))),
            Err(_) => {
                return Err(WebTrouble::Unreachable(format!("no connection within {} s", limits.seconds)));
            }
        };
        let answering = async {
            let request = request(url, method, own, body);
            let response = client.send_on(connection, request).await.map_err(Lost::from)?;
            read(url, response, limits.bytes).await
        };
        timeout_at(deadline, answering).await.unwrap_or(Err(WebTrouble::TimedOut { seconds: limits.seconds }))
    }

    /// Made when it is first needed: reading the certificate store costs milliseconds.
    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, rustls::Error> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let tls = tls_config(self.extra_roots.clone())?;
        Ok(Arc::clone(self.tls.get_or_init(|| tls)))
    }
}

fn request(url: &NamedUrl, method: Method, own: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = url.target();
    let headers = request.headers_mut();
    // First, as RFC 9110 §7.2 asks. The URL's own parser leaves visible ASCII, which a header value always takes.
    if let Ok(host) = HeaderValue::from_str(url.authority()) {
        headers.insert(HOST, host);
    }
    headers.insert(USER_AGENT, OUR_NAME);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.extend(own);
    request
}

async fn read(url: &NamedUrl, response: http::Response<Body>, limit: usize) -> Result<Fetched, WebTrouble> {
    let (head, mut body) = response.into_parts();
    let (status, headers) = (head.status.as_u16(), head.headers);
    if head.status.is_redirection() {
        return Err(WebTrouble::Redirect { status, target: redirect_target(url, &headers) });
    }
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return Err(WebTrouble::Encoded);
    }
    let is_json = is_json(&headers);
    let announced = body.announced().map_or(limit, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if is_json && announced > limit {
        return Err(WebTrouble::TooLarge { limit });
    }
    // Never grown: that would leave a copy behind, which nobody wipes.
    let mut all = Zeroizing::new(Vec::with_capacity(announced.min(limit)));
    while let Some(mut chunk) = body.chunk().await.map_err(|_| WebTrouble::Broken)? {
        let room = limit - all.len();
        if chunk.len() > room {
            if is_json {
                return Err(WebTrouble::TooLarge { limit });
            }
            chunk.truncate(room);
            all.extend_from_slice(&chunk);
            break;
        }
        all.extend_from_slice(&chunk);
    }
    Ok(Fetched { status, is_json, retry_after: retry_after(&headers), body: all })
}

fn redirect_target(url: &NamedUrl, headers: &HeaderMap) -> Option<String> {
    let target = headers.get(LOCATION)?.to_str().ok()?;
    Some(visible(&without_query(&url.as_url().join(target).ok()?), 300))
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence =
        text.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    essence == b"application/json" || essence.ends_with(b"+json")
}

/// Without the body, which may hold tokens.
impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fetched { status, is_json, retry_after, body } = self;
        f.debug_struct("Fetched")
            .field("status", status)
            .field("is_json", is_json)
            .field("retry_after", retry_after)
            .field("bytes", &body.len())
            .finish()
    }
}

impl From<Lost> for WebTrouble {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Unreachable(why) => WebTrouble::Unreachable(cause(&*why)),
            Lost::Broken => WebTrouble::Broken,
        }
    }
}

impl WebTrouble {
    /// Whether it is certain that the request did not arrive.
    pub fn nothing_sent(&self) -> bool {
        matches!(self, WebTrouble::Unreachable(_))
    }
}

/// What stands behind the URL in a sentence.
impl fmt::Display for WebTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebTrouble::Unreachable(why) => write!(f, "cannot be reached: {why}"),
            WebTrouble::Broken => f.write_str("broke the connection before its answer was whole"),
            WebTrouble::TimedOut { seconds } => write!(f, "gave no answer within {seconds} s"),
            WebTrouble::TooLarge { limit } => write!(f, "answered with more than {limit} bytes"),
            WebTrouble::Redirect { status, target: Some(target) } => {
                write!(f, "answered with a redirect ({status}) to {target}, which is not followed")
            }
            WebTrouble::Redirect { status, target: None } => {
                write!(f, "answered with a redirect ({status}), which is not followed")
            }
            WebTrouble::Encoded => f.write_str("answered with a compressed body, which was not asked for"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc;
    use tokio::time::pause;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Tells the test each request as text, and answers it with the same bytes; then closes.
    struct Server {
        origin: String,
        requests: mpsc::UnboundedReceiver<String>,
    }

    impl Server {
        async fn start(answer: impl Into<Vec<u8>>) -> Self {
            Server::serve("http", answer.into(), None).await
        }

        async fn serve(scheme: &str, answer: Vec<u8>, tls: Option<TlsAcceptor>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let origin = format!("{scheme}://{}", listener.local_addr().unwrap());
            let (tell, requests) = mpsc::unbounded_channel();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    match &tls {
                        None => respond(stream, &answer, &tell).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                respond(stream, &answer, &tell).await;
                            }
                        }
                    }
                }
            });
            Server { origin, requests }
        }

        fn url(&self, path: &str) -> NamedUrl {
            NamedUrl::parse(&format!("{}{path}", self.origin), Reach::Loopback).unwrap()
        }

        async fn get(&self) -> Result<Fetched, WebTrouble> {
            web().get(&self.url("/")).await
        }
    }

    async fn respond(
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        answer: &[u8],
        tell: &mpsc::UnboundedSender<String>,
    ) {
        tell.send(request_of(&mut stream).await).unwrap();
        // A client that has seen enough is gone before the end.
        let _ = stream.write_all(answer).await;
        let _ = stream.shutdown().await;
    }

    /// The head, and as much as it announces.
    async fn request_of(stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut text = String::new();
        loop {
            let mut buffer = [0; 4096];
            let read = stream.read(&mut buffer).await.unwrap_or_default();
            text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length =
                    head.split_once("content-length: ").map_or("0", |(_, rest)| rest.lines().next().unwrap());
                if read == 0 || body.len() >= length.parse().unwrap() {
                    return text;
                }
            }
        }
    }

    fn web() -> Web {
        Web::new(Reach::Loopback, Vec::new())
    }

    fn json(body: &str) -> String {
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn form(text: &str) -> Zeroizing<String> {
        Zeroizing::new(text.to_owned())
    }

    #[tokio::test]
    async fn a_document_is_asked_for_with_nothing_but_what_is_needed() {
        let mut server = Server::start(json(r#"{"issuer":"x"}"#)).await;
        let fetched = web().get(&server.url("/.well-known/x?a=b")).await.unwrap();
        assert_eq!((fetched.status, fetched.is_json, fetched.retry_after), (200, true, None));
        assert_eq!(&**fetched.body, br#"{"issuer":"x"}"#);
        assert!(!format!("{fetched:?}").contains("issuer"));
        let authority = server.origin.trim_start_matches("http://");
        assert_eq!(
            server.requests.recv().await.unwrap(),
            format!(
                "GET /.well-known/x?a=b HTTP/1.1\r\nhost: {authority}\r\nuser-agent: mcp-hasp/{}\r\n\
                 accept: application/json\r\nconnection: close\r\n\r\n",
                env!("CARGO_PKG_VERSION")
            )
        );
    }

    #[tokio::test]
    async fn form_and_authorization_are_sent_as_given() {
        let mut server = Server::start(json("{}")).await;
        let basic = HeaderValue::from_static("Basic aWQ6aHVudGVyMg==");
        web().post_form(&server.url("/token"), Some(basic), form("a=b%20c&d=")).await.unwrap();
        let request = server.requests.recv().await.unwrap();
        assert!(request.starts_with("POST /token HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("\r\nauthorization: Basic aWQ6aHVudGVyMg==\r\n"), "{request}");
        assert!(request.contains("\r\ncontent-type: application/x-www-form-urlencoded\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\na=b%20c&d="), "{request}");

        web().post_form(&server.url("/token"), None, form("a=b")).await.unwrap();
        assert!(!server.requests.recv().await.unwrap().contains("authorization"));

        web().post_json(&server.url("/register"), r#"{"a":1}"#.into()).await.unwrap();
        let request = server.requests.recv().await.unwrap();
        assert!(request.contains("\r\ncontent-type: application/json\r\n"), "{request}");
        assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
    }

    #[tokio::test]
    async fn no_cookie_is_kept() {
        let answer = "HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n";
        let mut server = Server::start(answer).await;
        let web = web();
        for _ in 0..2 {
            web.get(&server.url("/")).await.unwrap();
            assert!(!server.requests.recv().await.unwrap().contains("cookie"));
        }
    }

    #[tokio::test]
    async fn any_status_but_a_redirect_is_an_answer() {
        let answer = "HTTP/1.1 429 Slow Down\r\nretry-after: 7\r\ncontent-type: application/problem+JSON; charset=x\r\n\
                      content-length: 2\r\n\r\n{}";
        let fetched = Server::start(answer).await.get().await.unwrap();
        assert_eq!((fetched.status, fetched.is_json, fetched.retry_after), (429, true, Some(7)));
    }

    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let mut other = Server::start(json("{}")).await;
        for (location, shown) in [
            (
                format!("location: {}/next?code=hunter2\r\n", other.origin),
                Some(format!("{}/next?…", other.origin)),
            ),
            (String::new(), None),
        ] {
            for status in [301, 302, 303, 307, 308] {
                let answer = format!("HTTP/1.1 {status} Moved\r\n{location}content-length: 0\r\n\r\n");
                let server = Server::start(answer).await;
                let expected = WebTrouble::Redirect { status, target: shown.clone() };
                assert_eq!(server.get().await.unwrap_err(), expected);
                let posted = web().post_form(&server.url("/token"), None, form("code=x")).await;
                assert_eq!(posted.unwrap_err(), expected);
                assert!(!expected.nothing_sent());
            }
        }
        assert!(other.requests.try_recv().is_err(), "nobody may go there");
    }

    #[tokio::test]
    async fn an_answer_is_counted_while_it_arrives() {
        let exact = " ".repeat(GET.bytes);
        let beyond = " ".repeat(GET.bytes + 1);
        let chunked = |body: &str| {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
            format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
        };
        let endless = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{body}");
        for answer in [json(&exact), chunked(&exact), endless(&exact)] {
            assert_eq!(Server::start(answer).await.get().await.unwrap().body.len(), GET.bytes);
        }
        for answer in [json(&beyond), chunked(&beyond), endless(&beyond)] {
            let trouble = Server::start(answer).await.get().await.unwrap_err();
            assert_eq!(trouble, WebTrouble::TooLarge { limit: 64 * 1024 });
        }
        let server = Server::start(json(&" ".repeat(POST.bytes + 1))).await;
        let posted = web().post_json(&server.url("/"), "{}".into()).await;
        assert_eq!(posted.unwrap_err(), WebTrouble::TooLarge { limit: 256 * 1024 });
    }

    #[tokio::test]
    async fn what_is_not_json_is_cut_off() {
        let page = "<".repeat(GET.bytes + 9);
        let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\n\r\n{page}");
        let fetched = Server::start(answer).await.get().await.unwrap();
        assert_eq!((fetched.status, fetched.is_json, fetched.body.len()), (404, false, GET.bytes));
        for kind in ["text/plain", "application/jsonp", "application/json-seq", "x"] {
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 2\r\n\r\n{{}}");
            assert!(!Server::start(answer).await.get().await.unwrap().is_json, "{kind}");
        }
        assert!(
            !Server::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.get().await.unwrap().is_json
        );
    }

    #[tokio::test]
    async fn a_compressed_body_is_not_taken() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n";
        let gzip = format!("{head}content-encoding: gzip\r\n\r\n{{}}");
        assert_eq!(Server::start(gzip).await.get().await.unwrap_err(), WebTrouble::Encoded);
        let identity = format!("{head}content-encoding: Identity\r\n\r\n{{}}");
        assert!(Server::start(identity).await.get().await.is_ok());
    }

    #[tokio::test]
    async fn a_broken_connection_may_have_carried_the_request() {
        let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
        for answer in ["", "HTTP/1.1 20", "nonsense\r\n\r\n", cut] {
            let trouble = Server::start(answer).await.get().await.unwrap_err();
            assert_eq!(trouble, WebTrouble::Broken, "{answer}");
            assert!(!trouble.nothing_sent());
        }
    }

    #[tokio::test]
    async fn where_nobody_is_nothing_is_sent() {
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let url = NamedUrl::parse(&format!("http://{nobody}/"), Reach::Loopback).unwrap();
        let trouble = web().get(&url).await.unwrap_err();
        assert!(matches!(trouble, WebTrouble::Unreachable(_)), "{trouble}");
        assert!(trouble.nothing_sent());
    }

    /// Accepts one connection, says so by stopping the clock, and is silent. The clock then runs to the next deadline.
    async fn silent(scheme: &str, after_request: bool) -> NamedUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("{scheme}://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut stream: TcpStream = listener.accept().await.unwrap().0;
            if after_request {
                request_of(&mut stream).await;
            }
            pause();
            std::future::pending::<()>().await;
            drop(stream);
        });
        NamedUrl::parse(&origin, Reach::Loopback).unwrap()
    }

    #[tokio::test]
    async fn no_answer_in_time() {
        let trouble = web().get(&silent("http", true).await).await.unwrap_err();
        assert_eq!(trouble, WebTrouble::TimedOut { seconds: 10 });
        assert!(!trouble.nothing_sent());
    }

    #[tokio::test]
    async fn no_answer_to_a_form_in_time() {
        let trouble = web().post_form(&silent("http", true).await, None, form("a=b")).await.unwrap_err();
        assert_eq!(trouble, WebTrouble::TimedOut { seconds: 30 });
    }

    #[tokio::test]
    async fn no_connection_in_time_means_that_nothing_was_sent() {
        let trouble = web().get(&silent("https", false).await).await.unwrap_err();
        assert_eq!(trouble, WebTrouble::Unreachable("no connection within 10 s".into()));
        assert!(trouble.nothing_sent());
    }

    /// A root that nobody else knows, and a server with a certificate of it for 127.0.0.1.
    async fn private_authority() -> (CertificateDer<'static>, Server) {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = ca.self_signed(&ca_key).unwrap().der().clone();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let names = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = names.signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        (root, Server::serve("https", json("{}").into(), Some(tls)).await)
    }

    #[tokio::test]
    async fn a_private_root_counts_where_it_was_given() {
        let (root, mut server) = private_authority().await;
        let trusting = Web::new(Reach::Loopback, vec![root]);
        for _ in 0..2 {
            assert_eq!(trusting.get(&server.url("/")).await.unwrap().status, 200);
            server.requests.recv().await.unwrap();
        }
        let trouble = web().get(&server.url("/")).await.unwrap_err();
        assert!(trouble.nothing_sent());
        assert!(trouble.to_string().to_lowercase().contains("certificate"), "{trouble}");
        assert!(server.requests.try_recv().is_err());
    }
}
