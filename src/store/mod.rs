//! Files of this program: where they live, how they are read and written.

pub mod file;
pub mod place;
pub mod record;

pub use file::{FileProblem, Mode, read_whole, write_whole};
pub use place::{auto_lock_path, config_dir};
pub use record::{Client, ClientAuthentication, ClientOrigin, Record, Tokens};
