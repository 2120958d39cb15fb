//! The sign-in that is under way at a URL, and the one process that conducts it.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::exclusive::Exclusive;
use super::file::FileProblem;
use super::pending::Pending;
use super::problem::StoreProblem;
use super::sign_ins::Store;

/// Says what the file is.
const FORMAT: &str = "mcp-hasp pending sign-in";
/// Of the format.
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Stored<P> {
    format: String,
    version: u64,
    pending: P,
}

/// Held by the one process that asks the user to sign in at a URL. What it stores outlives it, so that the next one goes
/// on with the browser tab that is open.
pub struct AttemptLock {
    store: Store,
    path: PathBuf,
    _held: Exclusive,
}

impl AttemptLock {
    pub(super) fn new(store: Store, path: PathBuf, held: Exclusive) -> Self {
        AttemptLock { store, path, _held: held }
    }

    /// What an earlier process left. What cannot be read, or is of another release, is removed.
    ///
    /// # Errors
    /// The file may not be read or cannot be removed.
    pub fn read(&self) -> Result<Option<Pending>, StoreProblem> {
        let Some(text) = self.store.text(&self.path)? else { return Ok(None) };
        match text.ok().and_then(|text| parse(&text)) {
            Some(pending) => {
                self.conceal(&pending);
                Ok(Some(pending))
            }
            None => self.clear().map(|()| None),
        }
    }

    /// Stores how far it is.
    ///
    /// # Errors
    /// It cannot be written; what was there is still there.
    pub fn write(&self, pending: &Pending) -> Result<(), StoreProblem> {
        self.conceal(pending);
        self.store.put(&self.path, &Stored { format: FORMAT.to_owned(), version: VERSION, pending })
    }

    /// Removes it: the sign-in is done or given up.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn clear(&self) -> Result<(), StoreProblem> {
        match std::fs::remove_file(&self.path) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                Err(StoreProblem::file(&self.path)(FileProblem::System { attempt: "removed", why }))
            }
            _ => Ok(()),
        }
    }

    /// But for the state: it is in the link, which the user is shown.
    fn conceal(&self, pending: &Pending) {
        self.store.conceal_client(&pending.client);
        self.store.conceal_secret(&pending.verifier.0);
    }
}

pub(super) fn parse(text: &str) -> Option<Pending> {
    let stored: Stored<Pending> = serde_json::from_str(text).ok()?;
    (stored.format == FORMAT && stored.version == VERSION).then_some(stored.pending)
}

impl fmt::Debug for AttemptLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptLock").field("path", &self.path).finish_non_exhaustive()
    }
}
