//! JSON-RPC and MCP as raw text: no I/O, no clock, no typed model that could lose a member.

pub mod code;
pub mod json;
pub mod message;
pub mod meta;
pub mod method;
pub mod parse;
pub mod payload;
pub mod request;
pub mod skim;

pub use json::Object;
pub use message::{Id, Message};
pub use parse::{Malformed, parse};
pub use payload::{Payload, Splice};
pub use request::{Client, Declared, Question, Request};

/// The two families of protocol revisions (MCP "Versioning").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: stateless, metadata on every request.
    Modern,
    /// 2024-11-05 to 2025-11-25: opened by `initialize`.
    Legacy,
}

/// The one modern revision we speak.
pub const MODERN_VERSION: &str = "2026-07-28";

/// The legacy revisions we speak, newest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
