//! The only writer of stderr: levels, text or JSON lines, outside text escaped and shortened.
//!
//! A harness may never read our stderr. Lines therefore go through a bounded queue to a thread of their own;
//! when the pipe is full they are dropped and counted, and nothing else waits.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::secret::Secret;

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The program cannot go on, or a promise is at stake.
    Error,
    /// Something is not as it should be; the program goes on.
    Warning,
    /// What a user wants to know once.
    Info,
    /// `-v`: one line per event of the session.
    Verbose,
    /// `-vv`: one line per request.
    Debug,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Verbose => "verbose",
            Level::Debug => "debug",
        }
    }
}

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// `mcp-hasp: …`
    #[default]
    Text,
    /// One JSON object a line: `{"level", "message"}`.
    Json,
}

/// A handle to the one writer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Report {
    loudest: Level,
    format: Format,
    queue: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
    secrets: Arc<Mutex<Vec<Secret>>>,
}

/// Below this a secret cannot be told from an ordinary word.
const SHORTEST_SECRET: usize = 4;
/// Secrets that are looked out for. Only session ids become more with time; the newest matter.
const MOST_SECRETS: usize = 64;

#[derive(Debug)]
enum Entry {
    Line(String),
    Flush(SyncSender<()>),
}

/// Lines that may wait for a slow reader.
const QUEUE: usize = 256;
/// How long leaving waits for the last lines.
const FLUSH_LIMIT: Duration = Duration::from_millis(300);

impl Report {
    /// Starts the writer.
    pub fn start(loudest: Level, format: Format) -> Self {
        let (queue, lines) = sync_channel(QUEUE);
        // Ends when the last handle is gone. Without it (no thread to be had) lines are dropped, never printed elsewhere.
        let _ = std::thread::Builder::new()
            .name("stderr".into())
            .stack_size(64 * 1024)
            .spawn(move || write_lines(&lines));
        Report { loudest, format, queue, dropped: Arc::default(), secrets: Arc::default() }
    }

    /// Looks out for a secret from now on: an endpoint may put into its own words what it was sent.
    pub fn conceal(&self, secret: &str) {
        if secret.len() < SHORTEST_SECRET {
            return;
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if secrets.iter().any(|known| known.expose_secret() == secret) {
            return;
        }
        if secrets.len() == MOST_SECRETS {
            secrets.pop();
        }
        secrets.push(Secret::new(secret.to_owned()));
    }

    fn without_secrets(&self, message: &str) -> String {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().fold(message.to_owned(), |text, secret| {
            if text.contains(secret.expose_secret()) {
                text.replace(secret.expose_secret(), "[redacted]")
            } else {
                text
            }
        })
    }

    /// Says why the program ends or what is at stake.
    pub fn error(&self, message: impl AsRef<str>) {
        self.say(Level::Error, message.as_ref());
    }

    /// Says what is not as it should be.
    pub fn warning(&self, message: impl AsRef<str>) {
        self.say(Level::Warning, message.as_ref());
    }

    /// Says what a user wants to know once.
    pub fn info(&self, message: impl AsRef<str>) {
        self.say(Level::Info, message.as_ref());
    }

    /// `-v`. The text is only made when it is wanted.
    pub fn verbose(&self, message: impl FnOnce() -> String) {
        if self.loudest >= Level::Verbose {
            self.say(Level::Verbose, &message());
        }
    }

    /// `-vv`. The text is only made when it is wanted.
    pub fn debug(&self, message: impl FnOnce() -> String) {
        if self.loudest >= Level::Debug {
            self.say(Level::Debug, &message());
        }
    }

    /// Waits, a short time at most, until what was said is written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.try_send(Entry::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(FLUSH_LIMIT);
        }
    }

    fn say(&self, level: Level, message: &str) {
        if level > self.loudest {
            return;
        }
        let message = visible(&self.without_secrets(message), usize::MAX);
        let line = match self.format {
            Format::Text => match level {
                Level::Error | Level::Warning => format!("mcp-hasp: {}: {message}\n", level.name()),
                _ => format!("mcp-hasp: {message}\n"),
            },
            Format::Json => {
                format!(
                    "{{\"level\":\"{}\",\"message\":{}}}\n",
                    level.name(),
                    serde_json::Value::from(message)
                )
            }
        };
        if self.queue.try_send(Entry::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            lost => self.say(Level::Warning, &format!("{lost} lines were dropped; stderr is not being read")),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn write_lines(lines: &Receiver<Entry>) {
    let mut stderr = std::io::stderr();
    while let Ok(entry) = lines.recv() {
        match entry {
            // A closed stderr is no reason to end.
            Entry::Line(line) => drop(stderr.write_all(line.as_bytes())),
            Entry::Flush(done) => drop(done.send(())),
        }
    }
}

/// Outside text for a person's terminal: control, bidirectional and invisible characters are spelled out,
/// anything beyond `limit` characters is cut with an ellipsis.
pub fn visible(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for (count, character) in text.chars().enumerate() {
        if count == limit {
            out.push('…');
            break;
        }
        if is_deceptive(character) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            // soft hyphen, Arabic letter mark, Hangul fillers, Khmer inherent vowels, Mongolian separators
            0xad | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x3164 | 0xffa0
            // zero width, directional marks and overrides, separators, invisible operators, isolates
            | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            // variation selectors, byte-order mark, interlinear marks, tags
            | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffb | 0xe0000..=0xe0fff
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_somebody_elses_words_is_not_said() {
        let report = Report::start(Level::Error, Format::Text);
        report.conceal("tok-1234");
        report.conceal("abc");
        assert_eq!(report.without_secrets("bad tok-1234, abc"), "bad [redacted], abc");
    }

    #[test]
    fn what_could_fool_a_reader_is_spelled_out() {
        assert_eq!(visible("a\u{1b}[31mb\r\n", 99), r"a\u{1b}[31mb\u{d}\u{a}");
        assert_eq!(visible("x\u{202e}y\u{200b}z\u{e0041}", 99), r"x\u{202e}y\u{200b}z\u{e0041}");
        assert_eq!(visible("Übung 東京 🎲", 99), "Übung 東京 🎲");
        assert_eq!(visible("abcdef", 3), "abc…");
    }
}
