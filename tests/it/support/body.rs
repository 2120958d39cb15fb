//! Response bodies that can misbehave.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::record::{Fate, Ticket};

/// What the writing side of a streamed body hands over. Dropping the sender ends the body cleanly.
pub enum Piece {
    /// Bytes to send.
    Data(Bytes),
    /// Cut the connection here, after everything before it was flushed.
    Cut,
}

/// The body of every answer: pieces from a channel, and a ticket that learns how it went.
pub struct Out {
    pieces: mpsc::Receiver<Piece>,
    announced: Option<u64>,
    sent: u64,
    cutting: bool,
    ticket: Ticket,
}

impl Out {
    /// A body that is known whole.
    pub fn full(body: Bytes, ticket: Ticket) -> Self {
        let (sender, pieces) = mpsc::channel(1);
        let announced = Some(body.len() as u64);
        if !body.is_empty() {
            let _ = sender.try_send(Piece::Data(body));
        }
        let mut out = Self { pieces, announced, sent: 0, cutting: false, ticket };
        out.settle_when_complete();
        out
    }

    /// A body that is written piece by piece.
    pub fn stream(ticket: Ticket) -> (mpsc::Sender<Piece>, Self) {
        let (sender, pieces) = mpsc::channel(64);
        (sender, Self { pieces, announced: None, sent: 0, cutting: false, ticket })
    }

    /// The same, with a `content-length` that need not be true.
    pub fn announcing(length: u64, ticket: Ticket) -> (mpsc::Sender<Piece>, Self) {
        let (sender, out) = Self::stream(ticket);
        (sender, Self { announced: Some(length), ..out })
    }

    fn settle_when_complete(&mut self) {
        if self.announced == Some(self.sent) {
            self.ticket.settle(Fate::Answered);
        }
    }
}

impl Body for Out {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.cutting {
            self.ticket.settle(Fate::CutByEndpoint);
            return Poll::Ready(Some(Err(io::Error::other("cut, as the script says"))));
        }
        match self.pieces.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.ticket.settle(Fate::Answered);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Piece::Data(bytes))) => {
                self.sent += bytes.len() as u64;
                self.settle_when_complete();
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            // one more turn, so that what is buffered goes out first
            Poll::Ready(Some(Piece::Cut)) => {
                self.cutting = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.announced == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.announced.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
