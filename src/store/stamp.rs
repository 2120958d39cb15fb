//! Whether a file is still the one that was there before.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// What the system knows of a file without opening it. Another text is another file here, for each is written anew: its
/// number, size or times differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(Option<(u64, u64, Option<SystemTime>, Option<SystemTime>)>);

impl Stamp {
    /// Of what stands there now. There being none, or none that may be looked at, is a state like others.
    pub(super) fn of(path: &Path) -> Self {
        let known = |file: Metadata| (number(&file), file.len(), file.modified().ok(), file.created().ok());
        Stamp(std::fs::symlink_metadata(path).ok().map(known))
    }
}

#[cfg(unix)]
fn number(file: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

/// The standard library does not tell here; the times are fine enough.
#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}
