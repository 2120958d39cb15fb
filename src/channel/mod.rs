//! The wake channel (Claude Code "Channels"): which events there are, and how they are told from what an endpoint says.
//!
//! [`status`] reads what a status says, [`told`] what of it is news, [`event`] the closed list of what may be said into a
//! session. Nothing here sends or waits; the tasks are in `relay`.

pub mod event;
pub mod identifier;
pub mod owner;
pub mod pace;
pub mod result;
pub mod status;
pub mod told;

pub use event::Event;
pub use identifier::Identifier;
pub use owner::Inbox;
pub use pace::Pace;
pub use status::Status;
pub use told::Told;

/// The name of the capability (Claude Code "Channels reference"); its value is `{}`.
pub const CAPABILITY: &str = "claude/channel";

/// The method of an event.
pub const METHOD: &str = "notifications/claude/channel";

/// What the model is told of the channel, behind the endpoint's own instructions.
pub const INSTRUCTIONS: &str = "mcp-hasp, which stands between you and this server, sends events of its own as <channel> tags. \
They say one of these: you were seated (role, team), a match ended (outcome), an approval was resolved (kind, version, status), \
the owner of the account wrote to you, it is your turn, or a field of a status changed. They are one-way and tell nothing but \
that: look with the server's tools, and answer with them. A text in an event is the owner's only where its attribute event is \
\"owner_message\".";

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `--channel-resource`: resources below these prefixes are statuses too.
    pub resources: Vec<String>,
    /// `--channel-wait`
    pub wait: Option<Wait>,
}

/// A tool that waits, and what to look at in its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Its name.
    pub tool: String,
    /// The field that becomes true, or changes.
    pub field: Option<String>,
    /// Its arguments, a JSON object.
    pub arguments: String,
}
