//! The redirect: the one listening socket of this program. It is on 127.0.0.1 alone (RFC 8252 §7.3), open while a sign-in is
//! waited for, and takes one answer: the one that knows the state. Whatever else arrives there changes nothing.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::{Digest as _, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use url::form_urlencoded;

use super::page::Page;
use crate::secret::{AuthorizationCode, Secret};

/// The one path.
const PATH: &str = "/callback";
/// Connections at once. One more ends the oldest: who says nothing keeps nobody out.
const MOST_CONNECTIONS: usize = 16;
/// How long a request may take to arrive.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const MOST_BYTES: usize = 64 * 1024;
/// How long the page may take to be sent.
const PAGE_LIMIT: Duration = Duration::from_secs(5);
/// After an error of the system's: it may be out of file descriptors for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener that waits for its one answer.
#[derive(Debug)]
pub struct Callback {
    listener: TcpListener,
    port: u16,
}

/// What the answer says, its form encoding decoded once. The state was right; nothing else is known of it.
#[derive(Debug)]
pub struct Answered {
    /// `iss` (RFC 9207 §2)
    pub iss: Option<String>,
    /// `code`
    pub code: Option<AuthorizationCode>,
    /// `error`
    pub error: Option<String>,
    /// `error_description`
    pub error_description: Option<String>,
}

/// The browser that waits for its page.
pub struct Browser {
    page: oneshot::Sender<Page>,
    connections: JoinSet<()>,
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Browser")
    }
}

impl Callback {
    /// Listens. `None`: on a port that the system chooses.
    ///
    /// # Errors
    /// The port is taken, or the system has none.
    pub fn bind(port: Option<u16>) -> io::Result<Self> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Callback { listener: TcpListener::from_std(listener)?, port })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the browser is to be sent.
    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the redirect with this state, then listens no more. Dropping it ends everything at once.
    pub async fn answer(self, state: &Secret) -> (Answered, Browser) {
        let (found, mut answers) = mpsc::channel(1);
        let door = Arc::new(Door {
            host: format!("127.0.0.1:{}", self.port),
            state: Sha256::digest(state.expose_secret()).into(),
            found: Mutex::new(Some(found)),
        });
        let mut connections = JoinSet::new();
        let mut open: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            tokio::select! {
                biased;
                Some((answered, page)) = answers.recv() => {
                    return (answered, Browser { page, connections });
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        while connections.try_join_next().is_some() {}
                        open.retain(|connection| !connection.is_finished());
                        if open.len() == MOST_CONNECTIONS && let Some(oldest) = open.pop_front() {
                            oldest.abort();
                        }
                        open.push_back(connections.spawn(serve(stream, Arc::clone(&door))));
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

impl Browser {
    /// Shows the page, and waits a moment until it is sent.
    pub async fn show(mut self, page: Page) {
        if self.page.send(page).is_ok() {
            let sent = async { while self.connections.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(PAGE_LIMIT, sent).await;
        }
    }
}

/// Who waits for the answer, until it is there.
type Found = mpsc::Sender<(Answered, oneshot::Sender<Page>)>;

/// What every request is compared with.
struct Door {
    host: String,
    state: [u8; 32],
    found: Mutex<Option<Found>>,
}

async fn serve(stream: TcpStream, door: Arc<Door>) {
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(door.respond(&request).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .keep_alive(false)
        .max_buf_size(MOST_BYTES);
    // What a connection fails of concerns that connection alone.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Door {
    async fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !has_host(request.headers(), &self.host) {
            return Page::Stranger.response(400);
        }
        if request.uri().path() != PATH {
            return Page::Stranger.response(404);
        }
        if request.method() != Method::GET {
            let mut response = Page::Stranger.response(405);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        // A browser that looks ahead comes again when the person does.
        if is_prefetch(request.headers()) {
            return Page::Stranger.response(503);
        }
        let Some((state, answered)) = read(request.uri().query().unwrap_or_default()) else {
            return Page::Stranger.response(400);
        };
        // Hashes are compared, so that how long it takes says nothing about the state.
        if Sha256::digest(state.expose_secret()).as_slice() != self.state {
            return Page::Stranger.response(400);
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(found) = found else { return Page::Stranger.response(400) };
        let (show, page) = oneshot::channel();
        if found.try_send((answered, show)).is_err() {
            return Page::Failed.response(400);
        }
        let page = page.await.unwrap_or(Page::Failed);
        page.response(if page == Page::SignedIn { 200 } else { 400 })
    }
}

/// One `Host`, and exactly ours: a page that reached this port by another name is somebody else's (DNS rebinding).
fn has_host(headers: &HeaderMap, host: &str) -> bool {
    let mut given = headers.get_all(HOST).iter();
    given.next().is_some_and(|given| given.as_bytes() == host.as_bytes()) && given.next().is_none()
}

fn is_prefetch(headers: &HeaderMap) -> bool {
    const PURPOSE: [HeaderName; 3] = [
        HeaderName::from_static("sec-purpose"),
        HeaderName::from_static("purpose"),
        HeaderName::from_static("x-moz"),
    ];
    PURPOSE.iter().flat_map(|name| headers.get_all(name)).any(|value| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        value.contains("prefetch") || value.contains("prerender") || value.contains("preview")
    })
}

/// The parameters that count. `None`: no state, or one of them twice (RFC 6749 §3.1).
fn read(query: &str) -> Option<(Secret, Answered)> {
    let (mut state, mut iss, mut code, mut error, mut description) = (None, None, None, None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let slot = match &*name {
            "state" => &mut state,
            "iss" => &mut iss,
            "code" => &mut code,
            "error" => &mut error,
            "error_description" => &mut description,
            _ => continue,
        };
        if slot.replace(value.into_owned()).is_some() {
            return None;
        }
    }
    let code = code.filter(|code| !code.is_empty()).map(|code| AuthorizationCode(Secret::new(code)));
    Some((Secret::new(state?), Answered { iss, code, error, error_description: description }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinHandle;

    /// Whoever waits until here has failed; longer than any limit of the listener.
    const LIMIT: Duration = Duration::from_secs(20);

    struct Waiting {
        port: u16,
        answer: JoinHandle<(Answered, Browser)>,
    }

    fn wait() -> Waiting {
        let callback = Callback::bind(None).unwrap();
        let port = callback.port();
        assert_eq!(callback.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));
        Waiting {
            port,
            answer: tokio::spawn(async move { callback.answer(&Secret::new("right".into())).await }),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "here the browser is")]
    async fn connect(port: u16) -> io::Result<TcpStream> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await
    }

    async fn send(port: u16, request: &str) -> String {
        let mut stream = connect(port).await.unwrap();
        stream.write_all(request.replace("PORT", &port.to_string()).as_bytes()).await.unwrap();
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        let _ = tokio::time::timeout(LIMIT, reading).await.expect("no answer");
        answer
    }

    fn get(target: &str, headers: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n{headers}\r\n")
    }

    impl Waiting {
        async fn status(&self, request: &str) -> u16 {
            send(self.port, request).await.get(9..12).unwrap().parse().unwrap()
        }

        /// The right answer still arrives, and gets its page.
        async fn ends_well(self) -> Answered {
            let request = get("/callback?state=right&code=the%2Bcode&iss=https%3A%2F%2Fas", "");
            let page = tokio::spawn(async move { send(self.port, &request).await });
            let (answered, browser) = self.answer.await.unwrap();
            assert!(connect(self.port).await.is_err(), "it listens no more");
            browser.show(Page::SignedIn).await;
            let page = page.await.unwrap();
            assert!(page.starts_with("HTTP/1.1 200"), "{page}");
            assert!(!page.contains("code") && !page.contains("right"), "{page}");
            answered
        }
    }

    #[tokio::test]
    async fn the_right_answer_is_decoded_once_and_ends_the_wait() {
        let answered = wait().ends_well().await;
        assert_eq!(answered.code, Some(AuthorizationCode(Secret::new("the+code".into()))));
        assert_eq!(answered.iss.as_deref(), Some("https://as"));
        assert!(answered.error.is_none() && answered.error_description.is_none());
    }

    #[tokio::test]
    async fn whatever_else_arrives_is_answered_and_changes_nothing() {
        let waiting = wait();
        for (status, request) in [
            (400, get("/callback", "")),
            (400, get("/callback?code=c", "")),
            (400, get("/callback?state=wrong&code=c", "")),
            (400, get("/callback?state=&code=c", "")),
            (400, get("/callback?state=right%00&code=c", "")),
            (400, get("/callback?state=right&state=right&code=c", "")),
            (400, get("/callback?state=right&code=c&code=c", "")),
            (400, get("/callback?state=right&iss=a&iss=a", "")),
            (404, get("/favicon.ico", "")),
            (404, get("/callback/?state=right&code=c", "")),
            (404, get("/CALLBACK?state=right&code=c", "")),
            (405, get("/callback?state=right&code=c", "").replace("GET", "POST")),
            (405, get("/callback?state=right&code=c", "").replace("GET", "HEAD")),
            (503, get("/callback?state=right&code=c", "Sec-Purpose: prefetch;prerender\r\n")),
            (503, get("/callback?state=right&code=c", "Purpose: prefetch\r\n")),
            (400, get("/callback?state=right&code=c", "Host: 127.0.0.1:PORT\r\n")),
            (400, get("/callback?state=right&code=c", "").replace("127.0.0.1", "localhost")),
            (400, get("/callback?state=right&code=c", "").replace("127.0.0.1:PORT", "evil.example")),
            (400, "GET /callback?state=right HTTP/1.0\r\n\r\n".to_owned()),
            (400, "nonsense\r\n\r\n".to_owned()),
        ] {
            assert_eq!(waiting.status(&request).await, status, "{request}");
        }
        waiting.ends_well().await;
    }

    #[tokio::test]
    async fn who_says_nothing_keeps_nobody_out() {
        let waiting = wait();
        let mut idle = Vec::new();
        for _ in 0..3 * MOST_CONNECTIONS {
            idle.push(connect(waiting.port).await.unwrap());
        }
        waiting.ends_well().await;
    }

    #[tokio::test]
    async fn an_error_arrives_with_its_words() {
        let waiting = wait();
        let request = get("/callback?state=right&error=access_denied&error_description=not+%3Cb%3Etoday", "");
        let port = waiting.port;
        let page = tokio::spawn(async move { send(port, &request).await });
        let (answered, browser) = waiting.answer.await.unwrap();
        assert_eq!(answered.error.as_deref(), Some("access_denied"));
        assert_eq!(answered.error_description.as_deref(), Some("not <b>today"));
        browser.show(Page::Denied).await;
        let page = page.await.unwrap();
        assert!(page.starts_with("HTTP/1.1 400") && !page.contains("today"), "{page}");
    }

    #[tokio::test]
    async fn giving_up_frees_the_port() {
        let waiting = wait();
        let _idle = connect(waiting.port).await.unwrap();
        waiting.answer.abort();
        assert!(waiting.answer.await.unwrap_err().is_cancelled());
        Callback::bind(Some(waiting.port)).unwrap();
    }
}
