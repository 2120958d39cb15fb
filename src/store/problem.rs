//! Why sign-ins cannot be read or stored.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::FileProblem;

/// Why sign-ins cannot be read or stored. What is stored is as it was.
#[derive(Debug)]
pub enum StoreProblem {
    /// A file cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: FileProblem,
    },
    /// A newer release wrote it in a way of its own.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        version: u64,
    },
    /// It would become larger than that many bytes, which would not be read again.
    Full {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Another process holds what only one may hold at a time.
    Busy {
        /// What is held.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Nothing can be held there.
    NoLocks {
        /// What was to be held.
        path: PathBuf,
        /// The system's words.
        why: io::Error,
    },
}

impl StoreProblem {
    pub(super) fn file(path: &Path) -> impl Fn(FileProblem) -> Self {
        |why| StoreProblem::File { path: path.to_owned(), why }
    }
}

impl fmt::Display for StoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ELSEWHERE: &str = "or name another folder with --config-dir";
        match self {
            StoreProblem::File { path, why: FileProblem::Folder | FileProblem::Special } => {
                write!(f, "{} is no regular file; move it away, {ELSEWHERE}", path.display())
            }
            StoreProblem::File { path, why: FileProblem::Foreign } => write!(
                f,
                "{} belongs to another user, whose sign-ins are not used; run mcp-hasp as that user, {ELSEWHERE}",
                path.display()
            ),
            StoreProblem::File { path, why: why @ FileProblem::System { .. } } => write!(
                f,
                "{} {why}; sign-ins are kept there and are as they were: put that right, {ELSEWHERE}",
                path.display()
            ),
            StoreProblem::File { path, why } => write!(f, "{} {why}", path.display()),
            StoreProblem::Newer { path, version } => write!(
                f,
                "{} was written by a newer mcp-hasp (version {version} of its format) and is left alone; update this one, {ELSEWHERE}",
                path.display()
            ),
            StoreProblem::Full { path, limit } => write!(
                f,
                "{} would become larger than {limit} bytes, so the sign-in is not stored; sign out with --logout where you can, {ELSEWHERE}",
                path.display()
            ),
            StoreProblem::Busy { path, waited } => write!(
                f,
                "{} was held by another mcp-hasp process for more than {} s; that one may be stopped: go on with it or end it, and try again",
                path.display(),
                waited.as_secs()
            ),
            StoreProblem::NoLocks { path, why } => write!(
                f,
                "{} cannot be locked ({why}), which keeps processes from spending one sign-in twice; name a folder on a local disk with --config-dir",
                path.display()
            ),
        }
    }
}
