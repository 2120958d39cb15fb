//! Files of this program: where they live, how they are read and written.

pub mod attempt;
mod exclusive;
mod exposed;
pub mod file;
mod format;
pub mod pending;
pub mod place;
pub mod problem;
#[cfg(test)]
mod processes;
pub mod record;
pub mod sign_ins;
pub mod stamp;

pub use attempt::AttemptLock;
pub use file::{FileProblem, Mode, read_whole, write_whole};
pub use pending::Pending;
pub use place::{auto_lock_path, config_dir};
pub use problem::StoreProblem;
pub use record::{Client, ClientAuthentication, ClientOrigin, Record, Tokens};
pub use sign_ins::{RecordLock, Store};
pub use stamp::Stamp;
