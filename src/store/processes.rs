//! Tests with real processes: this test program, run again for one test of it, which finds its part in the folder it is
//! run in.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::StoreProblem;
use super::exclusive::Exclusive;
use super::place::sign_ins_folder;
use super::sign_ins::Store;
use super::sign_ins::tests::{OTHER, URL, keep, lock, put, record, set_aside, store, text};
use crate::report::{Format, Level, Report};

/// Begins a part in a process of its own.
fn start(folder: &Path, part: &str) -> Child {
    start_by(Command::new(std::env::current_exe().unwrap()), folder, part)
}

fn start_by(mut program: Command, folder: &Path, part: &str) -> Child {
    let place = folder.join(part);
    std::fs::create_dir_all(&place).unwrap();
    program
        .args(["--ignored", "--exact", "store::processes::a_part"])
        .current_dir(&place)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Held while the file is written.
fn try_writing(folder: &Path) -> Option<Exclusive> {
    Exclusive::attempt(&sign_ins_folder(folder).join("oauth.json.lock")).unwrap()
}

const ROUNDS: u64 = 25;
/// What the system lets a file have at most, of 512 bytes each.
const BLOCKS: usize = 16;

#[tokio::test]
#[ignore = "a part that the other tests here start, in a folder that says which"]
async fn a_part() {
    let place = std::env::current_dir().unwrap();
    let config = place.parent().unwrap().join("config");
    let report = Report::start(Level::Warning, Format::Text);
    let store = Store::new(config.clone(), report.clone());
    match place.file_name().unwrap().to_str().unwrap() {
        "hold" => {
            let held = (lock(&store, URL).await, store.try_attempt(URL).unwrap(), try_writing(&config));
            report.warning("ready");
            report.flush();
            std::io::stdin().read_line(&mut String::new()).unwrap();
            drop(held);
        }
        "read" => {
            assert!(store.read(URL).is_ok());
            report.flush();
        }
        "full" => {
            let mut large = record(2);
            large.granted = vec!["x".repeat(BLOCKS * 512)];
            let wrong = lock(&store, URL).await.write(&large).await.unwrap_err().to_string();
            assert!(wrong.contains("oauth.json cannot be written: File too large"), "{wrong}");
        }
        "write" => loop {
            keep(&store, URL, 1).await;
            keep(&store, OTHER, 1).await;
        },
        part if part.starts_with("count") => {
            // One that all of them write, and one that only this process does.
            let own = format!("{OTHER}/{part}");
            for round in 0..ROUNDS {
                for url in [URL, &own] {
                    let held = lock(&store, url).await;
                    let last = held.read().unwrap().map_or(0, |record| record.tokens.unwrap().obtained_at);
                    assert!(url == URL || last == round, "another process undid a write");
                    held.write(&record(last + 1)).await.unwrap();
                }
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn no_process_undoes_what_another_did() {
    let (folder, store) = store();
    let parts: Vec<_> = (0..4).map(|part| start(folder.path(), &format!("count{part}"))).collect();
    for part in parts {
        let done = part.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(store.read(URL).unwrap(), Some(record(4 * ROUNDS)));
    let all = store.all().unwrap();
    assert_eq!(all.len(), 5);
    assert!(all.into_iter().all(|(url, one)| url == URL || one == record(ROUNDS)));
    assert!(set_aside(&store).is_empty());
}

#[tokio::test]
async fn what_a_process_held_is_free_once_it_is_killed() {
    let (folder, store) = store();
    let mut holder = start(folder.path(), "hold");
    let mut lines = BufReader::new(holder.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("ready")));
    let wrong = store.exclusive(URL, Duration::ZERO).await.unwrap_err();
    assert!(matches!(wrong, StoreProblem::Busy { .. }), "{wrong}");
    assert!(store.try_attempt(URL).unwrap().is_none());
    assert!(try_writing(&folder.path().join("config")).is_none());
    drop(lock(&store, OTHER).await);
    holder.kill().unwrap();
    holder.wait().unwrap();
    keep(&store, URL, 1).await;
    assert!(store.try_attempt(URL).unwrap().is_some());
}

#[tokio::test]
async fn a_writer_that_is_killed_leaves_a_whole_file() {
    let (folder, store) = store();
    for _ in 0..5 {
        let mut writer = start(folder.path(), "write");
        for _ in 0..4 {
            let last = store.stamp();
            while store.stamp() == last {
                assert!(writer.try_wait().unwrap().is_none(), "it ended early");
                tokio::task::yield_now().await;
            }
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        assert_eq!(store.read(URL).unwrap(), Some(record(1)));
        assert!(set_aside(&store).is_empty());
    }
    keep(&store, URL, 2).await;
    assert_eq!(store.read(URL).unwrap(), Some(record(2)));
}

/// A limit on the size of files fails a write halfway, as a full disk does, and needs no right to make one.
#[cfg(unix)]
#[tokio::test]
async fn a_write_that_fails_halfway_leaves_the_old_file_and_nothing_else() {
    let (folder, store) = store();
    keep(&store, URL, 1).await;
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {BLOCKS}; exec \"$0\" \"$@\"")]);
    limited.arg(std::env::current_exe().unwrap());
    let done = start_by(limited, folder.path(), "full").wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(store.read(URL).unwrap(), Some(record(1)));
    assert_eq!(std::fs::read_dir(folder.path().join("config")).unwrap().count(), 2);
}

fn said_while_reading(folder: &Path) -> String {
    let done = start(folder, "read").wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    said
}

#[tokio::test]
async fn what_was_put_right_is_said_once_and_nothing_of_what_was_in_it() {
    let (folder, store) = store();
    keep(&store, URL, 1).await;
    assert_eq!(said_while_reading(folder.path()), "");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(store.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
        let config = folder.path().join("config");
        std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = said_while_reading(folder.path());
        assert!(said.contains("oauth.json was open to other users (mode 0640)"), "{said}");
        assert!(said.contains("config was open to other users (mode 0755)"), "{said}");
        assert_eq!(said_while_reading(folder.path()), "");
    }
    let whole = text(&store.path());
    for (damaged, words) in [
        (
            whole.trim_end().strip_suffix('}').unwrap().to_owned(),
            "oauth.json is damaged: it is cut off; it was set aside as ",
        ),
        (whole.replace("\"expires_at\": 2", "\"expires_at\": \"hidden\""), "the file as it was is "),
    ] {
        put(&store, damaged.as_bytes());
        let said = said_while_reading(folder.path());
        assert!(said.starts_with("mcp-hasp: warning: ") && said.lines().count() == 1, "{said}");
        let aside = set_aside(&store);
        let aside = aside.first().unwrap();
        assert!(said.contains(words) && said.contains(aside.to_str().unwrap()), "{said}");
        assert!(!said.contains("hidden"));
        assert_eq!(text(aside), damaged);
        std::fs::remove_file(aside).unwrap();
        assert_eq!(said_while_reading(folder.path()), "");
    }
}
