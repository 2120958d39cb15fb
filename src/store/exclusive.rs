//! What only one process may hold at a time: a lock of the operating system, which ends with the process whatever ends
//! it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::file::{FileProblem, open_private, stands_at};
use super::problem::StoreProblem;

/// Held until it is dropped. The file stays: were it removed, one process could hold what is gone, and another what
/// was made anew.
#[derive(Debug)]
pub(super) struct Exclusive {
    _file: File,
}

/// How often a lock is asked for that another process holds. Systems can wait for one themselves, but not for a time.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a file is opened again because it was removed in between, against all custom.
const ATTEMPTS: usize = 8;

impl Exclusive {
    /// `None`: another one holds it.
    pub(super) fn attempt(path: &Path) -> Result<Option<Self>, StoreProblem> {
        for _ in 0..ATTEMPTS {
            let file = match open_private(path) {
                Ok(file) => file,
                // Removed between two looks at it.
                Err(FileProblem::Missing) => continue,
                Err(why) => return Err(StoreProblem::file(path)(why)),
            };
            match file.try_lock() {
                Ok(()) if stands_at(&file, path) => return Ok(Some(Exclusive { _file: file })),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(why)) => {
                    return Err(StoreProblem::NoLocks { path: path.to_owned(), why });
                }
            }
        }
        Err(StoreProblem::NoLocks { path: path.to_owned(), why: io::ErrorKind::NotFound.into() })
    }

    /// Waits for it, up to `limit`: whoever holds it may be stopped, and never go on.
    pub(super) async fn within(path: &Path, limit: Duration) -> Result<Self, StoreProblem> {
        let start = Instant::now();
        loop {
            if let Some(held) = Exclusive::attempt(path)? {
                return Ok(held);
            }
            if start.elapsed() >= limit {
                return Err(StoreProblem::Busy { path: path.to_owned(), waited: limit });
            }
            tokio::time::sleep(PAUSE.min(limit.saturating_sub(start.elapsed()))).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a").join("b.lock");
        (folder, path)
    }

    #[test]
    fn one_holds_it_until_it_is_dropped() {
        let (_folder, path) = place();
        let held = Exclusive::attempt(&path).unwrap().unwrap();
        assert!(Exclusive::attempt(&path).unwrap().is_none());
        drop(held);
        assert!(path.exists());
        assert!(Exclusive::attempt(&path).unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_has_an_end() {
        let (_folder, path) = place();
        let held = Exclusive::attempt(&path).unwrap().unwrap();
        let start = Instant::now();
        let wrong = Exclusive::within(&path, Duration::from_secs(3)).await.unwrap_err();
        assert!(start.elapsed() >= Duration::from_secs(3) && start.elapsed() < Duration::from_secs(4));
        assert!(wrong.to_string().contains("held by another mcp-hasp process for more than 3 s"), "{wrong}");
        let waiting = tokio::spawn(async move { Exclusive::within(&path, Duration::from_secs(3)).await });
        tokio::task::yield_now().await;
        drop(held);
        waiting.await.unwrap().unwrap();
    }

    #[test]
    fn a_file_that_was_removed_is_not_held() {
        let (_folder, path) = place();
        let gone = Exclusive::attempt(&path).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let held = Exclusive::attempt(&path).unwrap().unwrap();
        assert!(Exclusive::attempt(&path).unwrap().is_none());
        drop((gone, held));
    }

    #[cfg(unix)]
    #[test]
    fn it_is_private_and_never_behind_a_link() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let (folder, path) = place();
        drop(Exclusive::attempt(&path).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&folder.path().join("a"))), (0o600, 0o700));
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        symlink(&target, &link).unwrap();
        let wrong = Exclusive::attempt(&link).unwrap_err();
        assert!(wrong.to_string().contains("is a symbolic link"), "{wrong}");
        assert!(!target.exists());
    }
}
