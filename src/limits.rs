//! Bounds on either side, and what the user allows the endpoint to ask for.

/// Bounds on what is taken from either side.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest single message, in bytes.
    pub message_bytes: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Requests of the harness under way at once.
    pub requests: usize,
}

/// What the user allows the endpoint to ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allow {
    /// `sampling/createMessage`
    pub sampling: bool,
    /// `roots/list`
    pub roots: bool,
}
