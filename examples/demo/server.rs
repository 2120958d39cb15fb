//! What the two servers of the demonstration share: a port of 127.0.0.1, and answers that are there at once.

use std::convert::Infallible;
use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::Result;

/// The body of a response: one text, or a stream of events.
pub(crate) type Answer = BoxBody<Bytes, Infallible>;

/// A running server. Dropping it closes the port and every connection.
pub(crate) struct Server(JoinHandle<()>);

impl Server {
    pub(crate) fn start<F>(
        listener: TcpListener,
        serve: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Answer>> + Send + 'static,
    {
        Self(tokio::spawn(accept(listener, serve)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept<F>(listener: TcpListener, serve: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static)
where
    F: Future<Output = Response<Answer>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                let serve = serve.clone();
                let service = service_fn(move |request| {
                    let answer = serve(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A port that the system chose.
pub(crate) async fn listener() -> Result<TcpListener> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?)
}

pub(crate) fn json(value: &Value) -> Response<Answer> {
    respond(StatusCode::OK, "application/json", value.to_string())
}

pub(crate) fn respond(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Answer> {
    streamed(status, kind, Full::from(body.into()).boxed())
}

pub(crate) fn streamed(status: StatusCode, kind: &'static str, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A text that cannot be guessed: two differently seeded hashers give 128 bits that only this process knows.
pub(crate) fn unguessable() -> String {
    let [high, low] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    format!("{high:016x}{low:016x}")
}
