//! The client: HTTP/1.1 connections to one URL, used again while they are fresh.
//!
//! No redirect is followed, no cookie kept, no compression asked for: hyper does what it is told and nothing more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{SendRequest, handshake};
use rustls::pki_types::CertificateDer;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::EndpointUrl;
use super::connect::{Connector, Unreachable};

/// A connection that lay idle for longer may have been forgotten on its way.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// Idle connections that are kept.
const IDLE_CONNECTIONS: usize = 256;

/// Sends requests to one URL. What it opened is closed when it is dropped.
#[derive(Debug)]
pub struct Client {
    connector: Connector,
    idle: Arc<Idle>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Lost {
    /// Nothing was sent: no connection came about.
    Unreachable(Unreachable),
    /// The connection broke, and the request may have arrived.
    Broken,
}

impl<T> From<TrySendError<T>> for Lost {
    fn from(error: TrySendError<T>) -> Self {
        match error.message() {
            Some(_) => Lost::Unreachable(error.into_error().into()),
            None => Lost::Broken,
        }
    }
}

/// The body of an answer. Dropping it before its end closes the connection: so a request is cancelled in HTTP/1.1.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    connection: Option<Connection>,
    idle: Arc<Idle>,
}

/// One connection; dropping it closes it.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _driver: AbortOnDropHandle<hyper::Result<()>>,
}

/// Connections between two requests, the oldest first.
#[derive(Debug, Default)]
struct Idle(Mutex<VecDeque<(Instant, Connection)>>);

impl Client {
    /// Prepares the way to an endpoint. Trusts the system's roots and `extra_roots`.
    ///
    /// # Errors
    /// The system has no usable certificate store, or an extra root is not a certificate.
    pub fn new(url: &EndpointUrl, extra_roots: Vec<CertificateDer<'static>>) -> Result<Self, rustls::Error> {
        Ok(Client::through(Connector::new(url, extra_roots)?))
    }

    /// A client for wherever the connector leads.
    pub(super) fn through(connector: Connector) -> Self {
        Client { connector, idle: Arc::default() }
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response<Body>, Lost> {
        if let Some(connection) = self.idle.take() {
            match self.send_on(connection, request).await {
                Ok(response) => return Ok(response),
                // It was closed while idle. Only what was not sent at all goes out once more.
                Err(mut error) => request = error.take_message().ok_or(Lost::Broken)?,
            }
        }
        let connection = Box::pin(self.connect()).await.map_err(Lost::Unreachable)?;
        self.send_on(connection, request).await.map_err(Lost::from)
    }

    pub(super) async fn send_on(
        &self,
        mut connection: Connection,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Body>, TrySendError<Request<Full<Bytes>>>> {
        let response = connection.sender.try_send_request(request).await?;
        Ok(response.map(|incoming| {
            let mut body = Body { incoming, connection: Some(connection), idle: Arc::clone(&self.idle) };
            body.give_back_at_end();
            body
        }))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub(super) async fn connect(&self) -> Result<Connection, Unreachable> {
        let stream = self.connector.connect().await?;
        let (sender, driver) = handshake(stream).await?;
        Ok(Connection { sender, _driver: AbortOnDropHandle::new(tokio::spawn(driver)) })
    }
}

impl Body {
    /// The next piece, `None` at the end.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while !self.incoming.is_end_stream() {
            let Some(frame) = self.incoming.frame().await.transpose()? else { break };
            self.give_back_at_end();
            // Anything else is a trailer, which MCP does not know.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        self.give_back();
        Ok(None)
    }

    /// The length that was announced.
    pub fn announced(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    fn give_back_at_end(&mut self) {
        if self.incoming.is_end_stream() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.idle.put(connection);
        }
    }
}

impl Idle {
    /// The newest, which is the least likely to be closed by the other side.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, connection)) = idle.pop_back() {
            if since.elapsed() >= IDLE_LIMIT {
                // And so are all that lay there before it.
                idle.clear();
            } else if connection.sender.is_ready() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection if it can take another request: its driver has seen the end of the body before we did.
    fn put(&self, connection: Connection) {
        if !connection.sender.is_ready() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.len() >= IDLE_CONNECTIONS
            || idle.front().is_some_and(|(since, _)| now.duration_since(*since) >= IDLE_LIMIT)
        {
            idle.pop_front();
        }
        idle.push_back((now, connection));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;
    use tokio::time::{advance, pause, resume, timeout};

    use super::*;

    /// Answers each request on each connection with the same bytes.
    #[derive(Default)]
    struct Server {
        answer: &'static str,
        answers_on_each: usize,
        connections: AtomicUsize,
        requests: AtomicUsize,
        left: Notify,
    }

    impl Server {
        async fn start(answers_on_each: usize, answer: &'static str) -> (Arc<Self>, Client) {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = EndpointUrl::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
            let server = Arc::new(Server { answer, answers_on_each, ..Server::default() });
            let serving = Arc::clone(&server);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    serving.connections.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(Arc::clone(&serving).serve(stream));
                }
            });
            (server, Client::new(&url, Vec::new()).unwrap())
        }

        async fn serve(self: Arc<Self>, mut stream: TcpStream) {
            let mut buffer = [0; 1024];
            // A request without a body fits into one segment.
            for nth in 0.. {
                match stream.read(&mut buffer).await {
                    Ok(1..) => self.requests.fetch_add(1, Ordering::Relaxed),
                    _ => return self.left.notify_one(),
                };
                if nth == self.answers_on_each {
                    return;
                }
                stream.write_all(self.answer.as_bytes()).await.unwrap();
            }
        }

        /// Connections, requests.
        fn seen(&self) -> (usize, usize) {
            (self.connections.load(Ordering::Relaxed), self.requests.load(Ordering::Relaxed))
        }

        async fn is_left(&self) -> bool {
            timeout(Duration::from_secs(5), self.left.notified()).await.is_ok()
        }
    }

    const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    const EMPTY: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
    const CLOSING: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    const UNFINISHED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}";

    async fn send(client: &Client) -> Result<Body, Lost> {
        client.send(Request::new(Full::default())).await.map(Response::into_body)
    }

    async fn exchange(client: &Client) -> Bytes {
        let mut body = send(client).await.unwrap();
        let first = body.chunk().await.unwrap().unwrap_or_default();
        assert_eq!(body.chunk().await.unwrap(), None);
        first
    }

    #[tokio::test]
    async fn a_connection_serves_one_request_after_the_other() {
        for answer in [WHOLE, CHUNKED, EMPTY] {
            let (server, client) = Server::start(usize::MAX, answer).await;
            for _ in 0..3 {
                exchange(&client).await;
            }
            assert_eq!(server.seen(), (1, 3), "{answer}");
            drop(client);
            assert!(server.is_left().await);
        }
    }

    #[tokio::test]
    async fn an_empty_body_need_not_be_read() {
        let (server, client) = Server::start(usize::MAX, EMPTY).await;
        drop(send(&client).await.unwrap());
        drop(send(&client).await.unwrap());
        assert_eq!(server.seen(), (1, 2));
    }

    #[tokio::test]
    async fn a_closed_connection_is_not_used_again() {
        let (server, client) = Server::start(usize::MAX, CLOSING).await;
        exchange(&client).await;
        exchange(&client).await;
        assert_eq!(server.seen(), (2, 2));
    }

    #[tokio::test]
    async fn what_was_not_sent_goes_out_once_more() {
        let (server, client) = Server::start(usize::MAX, WHOLE).await;
        exchange(&client).await;
        // Closed, but nobody has noticed yet.
        client.idle.0.lock().unwrap().back().unwrap().1._driver.abort();
        exchange(&client).await;
        assert_eq!(server.seen(), (2, 2));
    }

    #[tokio::test]
    async fn what_may_have_arrived_is_not_sent_again() {
        let (server, client) = Server::start(1, WHOLE).await;
        exchange(&client).await;
        assert!(matches!(send(&client).await, Err(Lost::Broken)));
        assert_eq!(server.seen(), (1, 2));
        exchange(&client).await;
        assert_eq!(server.seen(), (2, 3));
    }

    #[tokio::test]
    async fn what_lay_idle_for_long_is_closed() {
        let (server, client) = Server::start(usize::MAX, WHOLE).await;
        exchange(&client).await;
        pause();
        advance(IDLE_LIMIT).await;
        resume();
        exchange(&client).await;
        assert_eq!(server.seen(), (2, 2));
        assert!(server.is_left().await);
    }

    #[tokio::test]
    async fn an_unfinished_body_closes_its_connection() {
        let (server, client) = Server::start(usize::MAX, UNFINISHED).await;
        let mut body = send(&client).await.unwrap();
        assert_eq!(body.announced(), Some(9));
        assert_eq!(body.chunk().await.unwrap().unwrap(), "{}");
        drop(body);
        assert!(server.is_left().await);
        assert!(client.idle.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_request_nobody_waits_for_closes_its_connection() {
        let (server, client) = Server::start(usize::MAX, "").await;
        assert!(timeout(Duration::from_millis(50), send(&client)).await.is_err());
        assert_eq!(server.seen(), (1, 1));
        assert!(server.is_left().await);
    }

    #[tokio::test]
    async fn a_broken_body_is_an_error() {
        let (_, client) = Server::start(0, "").await;
        assert!(matches!(send(&client).await, Err(Lost::Broken)));
        let url = EndpointUrl::parse("http://127.0.0.1:1/").unwrap();
        let nobody = Client::new(&url, Vec::new()).unwrap();
        assert!(matches!(send(&nobody).await, Err(Lost::Unreachable(_))));
    }
}
