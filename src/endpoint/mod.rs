//! The HTTPS side: one URL, either era, everything that arrives bounded.

mod backoff;
pub mod challenge;
pub mod exchange;
mod header;
pub mod http;
pub mod opening;
pub mod park;
pub mod session;
pub mod sse;
pub mod survey;
pub mod tokens;
pub mod trouble;
pub mod watch;

pub use backoff::Backoff;
pub use challenge::Challenge;
pub use exchange::{Exchange, Reply, Step};
pub use http::Http;
pub use opening::{Opened, Patience};
pub use session::{OwnMethod, Session, Unsolicited};
pub use survey::read_again;
pub use tokens::{Fixed, Token, TokenSource};
pub use trouble::{SignInTrouble, Trouble};
pub use watch::{Filter, Watch, WatchEvent, missed};
