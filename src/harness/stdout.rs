//! The one writer of stdout: whole lines, in order, flushed. MCP messages and nothing else.

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::wire::Payload;

/// Lines that may wait for a harness that reads slowly; whoever has more to say waits.
const QUEUE: usize = 64;
/// Pieces below this are written together, larger ones as they lie.
const SMALL: usize = 16 * 1024;
/// How much is put together for one write.
const BATCH: usize = 64 * 1024;

/// A handle to the writer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stdout {
    queue: mpsc::Sender<Payload>,
}

impl Stdout {
    /// A handle, and the lines it will yield to [`write`].
    pub fn new() -> (Self, mpsc::Receiver<Payload>) {
        let (queue, lines) = mpsc::channel(QUEUE);
        (Stdout { queue }, lines)
    }

    /// Hands a whole line over. Waits while the harness does not read.
    pub async fn send(&self, line: Payload) {
        // Fails only when the harness has closed its end, and then nobody waits for the line.
        let _ = self.queue.send(line).await;
    }

    /// Hands a line over if there is room at once.
    ///
    /// # Errors
    /// The line, when there is none.
    pub fn try_send(&self, line: Payload) -> Result<(), Payload> {
        self.queue.try_send(line).map_err(mpsc::error::TrySendError::into_inner)
    }
}

/// Writes until the last handle is gone.
///
/// # Errors
/// The harness has closed its end.
pub async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Payload>,
) -> std::io::Result<()> {
    let mut batch = Vec::with_capacity(4096);
    while let Some(line) = lines.recv().await {
        let mut next = Some(line);
        while let Some(line) = next {
            for piece in line.pieces() {
                put(&mut output, &mut batch, piece).await?;
            }
            drop(line);
            next = if batch.len() < BATCH { lines.try_recv().ok() } else { None };
        }
        output.write_all(&batch).await?;
        output.flush().await?;
        batch.clear();
        batch.shrink_to(BATCH);
    }
    Ok(())
}

async fn put(
    output: &mut (impl AsyncWrite + Unpin),
    batch: &mut Vec<u8>,
    piece: &Bytes,
) -> std::io::Result<()> {
    if piece.len() < SMALL {
        batch.extend_from_slice(piece);
        return Ok(());
    }
    output.write_all(batch).await?;
    batch.clear();
    output.write_all(piece).await
}

/// Ends when the reader of our stdout has gone, even while nothing is being written: of a pipe, or of a socket, which is
/// what Node gives to its children.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "nothing is written through it")]
#[expect(
    deprecated,
    reason = "what is watched owns its descriptor, so it is sound here; the successor is an unsafe function"
)]
pub async fn closed() {
    use std::os::fd::AsFd as _;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    // The system tells of a pipe without a reader by an error, of a socket without a peer by a hangup; the latter comes
    // with every interest, and this one brings nothing else. Files and the like cannot be watched: their reader cannot leave.
    let gone = Interest::ERROR | Interest::PRIORITY;
    let watched = std::io::stdout().as_fd().try_clone_to_owned();
    match watched.and_then(|stdout| AsyncFd::with_interest(stdout, gone)) {
        Ok(watched) => drop(watched.ready(gone).await),
        Err(_) => std::future::pending().await,
    }
}

/// Elsewhere the next write tells.
#[cfg(not(target_os = "linux"))]
pub async fn closed() {
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_arrive_whole_and_in_order_whatever_their_size() {
        let (stdout, lines) = Stdout::new();
        let large = vec![b'x'; 3 * SMALL];
        let mut mixed = Payload::from("a".to_owned());
        mixed.push(large.clone());
        mixed.push("b\n".to_owned());
        stdout.send(Payload::from("1\n".to_owned())).await;
        stdout.send(mixed).await;
        stdout.send(Payload::from("2\n".to_owned())).await;
        drop(stdout);
        let mut out = Vec::new();
        write(&mut out, lines).await.unwrap();
        assert_eq!(out, [b"1\na".as_slice(), &large, b"b\n2\n"].concat());
    }
}
