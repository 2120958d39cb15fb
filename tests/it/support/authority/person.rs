//! The person with the browser: opens links, says yes or no, follows the redirect.

use std::{path::Path, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, rustls};
use url::Url;

use crate::support::LIMIT;

/// What a browser got.
#[derive(Clone, Debug)]
pub struct Page {
    /// The status.
    pub status: u16,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, as text.
    pub body: String,
}

impl Page {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn read(answer: &[u8]) -> Option<Self> {
        let at = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut page = Self { status, headers, body: String::new() };
        let body = &answer[at + 4..];
        let chunked = page.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
        let whole = if chunked { joined(body) } else { body.to_vec() };
        page.body = String::from_utf8_lossy(&whole).into_owned();
        Some(page)
    }
}

/// The chunks of a body, without what is between them.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..at]).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
        let Ok(size @ 1..) = size else { break };
        let Some(chunk) = rest.get(at + 2..at + 2 + size) else { break };
        whole.extend_from_slice(chunk);
        rest = rest.get(at + 4 + size..).unwrap_or_default();
    }
    whole
}

/// Sends bytes to an address, and reads until the other side closes. `None` where nobody listens, or where the
/// connection is closed without an answer.
pub async fn send_raw(address: &str, text: &str, root: Option<(&Path, &str)>) -> Option<Page> {
    let exchange = async {
        let stream = TcpStream::connect(address).await.ok()?;
        match root {
            None => talk(stream, text).await,
            Some((root, host)) => {
                let name = rustls::pki_types::ServerName::try_from(host.to_owned()).unwrap();
                talk(TlsConnector::from(trusting(root)).connect(name, stream).await.ok()?, text).await
            }
        }
    };
    timeout(LIMIT, exchange).await.unwrap_or_else(|_| panic!("{address} does not answer"))
}

/// GETs a link, with more header lines (each with its end). No redirect is followed.
pub async fn get(link: &str, more: &str, root: Option<&Path>) -> Option<Page> {
    let url = Url::parse(link).unwrap_or_else(|wrong| panic!("{link}: {wrong}"));
    let host = url.host_str().unwrap();
    let address = format!("{host}:{}", url.port_or_known_default().unwrap());
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let text = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
    let root = (url.scheme() == "https").then(|| (root.expect("https, and no root is known"), host));
    send_raw(&address, &text, root).await
}

/// GETs the location that a redirect led to, as a browser does; status and body.
pub async fn visit(location: &str) -> (u16, String) {
    let page = try_visit(location).await;
    let page = page.unwrap_or_else(|| panic!("nobody answers at {location}"));
    (page.status, page.body)
}

/// The same; `None` where nobody answers.
pub async fn try_visit(location: &str) -> Option<Page> {
    get(location, "User-Agent: a browser\r\nAccept: text/html\r\n", None).await
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, text: &str) -> Option<Page> {
    stream.write_all(text.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Page::read(&answer)
}

fn trusting(root: &Path) -> Arc<rustls::ClientConfig> {
    use rustls::pki_types::{CertificateDer, pem::PemObject as _};

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(root).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
