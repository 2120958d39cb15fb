//! The HTTPS side: one URL, either era, everything that arrives bounded.

mod backoff;
pub mod exchange;
mod header;
pub mod http;
pub mod opening;
pub mod park;
pub mod session;
pub mod sse;
pub mod survey;
pub mod trouble;
pub mod watch;

pub use backoff::Backoff;
pub use exchange::{Exchange, Reply, Step};
pub use http::Http;
pub use opening::{Opened, Patience};
pub use session::{OwnMethod, Session, Unsolicited};
pub use survey::read_again;
pub use trouble::Trouble;
pub use watch::{Filter, Watch, WatchEvent, missed};
