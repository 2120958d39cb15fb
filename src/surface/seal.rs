//! The seal: once closed, for the rest of the process.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use super::pin::Mismatch;

/// Closed by the first sign that the surface is not the pinned one. There is no way to open it again.
#[derive(Debug, Default)]
pub struct Seal {
    why: OnceLock<Box<Mismatch>>,
    closed: CancellationToken,
}

impl Seal {
    /// Closes it. The first reason stays.
    pub fn close(&self, why: Mismatch) {
        let _ = self.why.set(Box::new(why));
        self.closed.cancel();
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Resolves when it is closed.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Why it was closed.
    pub fn why(&self) -> Option<&Mismatch> {
        self.why.get().map(Box::as_ref)
    }
}
