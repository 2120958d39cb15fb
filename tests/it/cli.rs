//! The command line: what it means, and what is said when it is wrong.

mod diagnostics;
mod endpoint;
mod secrets;

use std::{ffi::OsStr, io::Write as _, process::Stdio};

use tempfile::{NamedTempFile, TempDir};
use tokio::{process::Command, time::timeout};

use crate::support::LIMIT;

/// A URL that is fine and that nobody is asked at: the program leaves at once, as its stdin is empty.
const FINE: &str = "http://127.0.0.1:9/mcp";

/// One run of the program with an empty stdin.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the program with those arguments and that environment alone.
async fn run<A: AsRef<OsStr>>(args: &[A], environment: &[(&str, &str)]) -> Run {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-hasp"));
    command.args(args).env_clear().env("HOME", home.path()).envs(environment.iter().copied());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LIMIT, command.output()).await.expect("the program does not end").unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Run {
    /// It failed as a program should: the code, nothing on stdout, one line on stderr that has those words.
    fn failed(&self, code: i32, words: &[&str]) {
        let Self { stderr, .. } = self;
        assert_eq!(self.code, code, "{stderr}");
        assert_eq!(self.stdout, "", "nothing but MCP belongs on stdout");
        assert_eq!(stderr.lines().count(), 1, "one line:\n{stderr}");
        assert!(stderr.starts_with("mcp-hasp: ") && stderr.ends_with('\n'), "{stderr:?}");
        for word in words {
            assert!(stderr.to_lowercase().contains(&word.to_lowercase()), "no {word:?} in {stderr}");
        }
        for word in ["panicked", "RUST_BACKTRACE", "Os {", "Some("] {
            assert!(!stderr.contains(word), "{word:?} in {stderr}");
        }
    }
}

/// The command line with the fine URL and those arguments fails.
async fn refused(args: &[&str], code: i32, words: &[&str]) -> Run {
    let run = run(&[&["--url", FINE], args].concat(), &[]).await;
    run.failed(code, words);
    run
}

/// The command line with the fine URL and those arguments is accepted.
async fn accepted(args: &[&str], environment: &[(&str, &str)]) {
    let run = run(&[&["--url", FINE], args].concat(), environment).await;
    assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
    assert_eq!(run.stdout, "");
}

/// A file with that content.
fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_ref()).unwrap();
    file
}

fn path(file: &NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}
