//! The only writer of stderr: levels, text or JSON lines, outside text escaped and shortened.
//!
//! A harness may never read our stderr. Lines therefore go through a bounded queue to a thread of their own;
//! when the pipe is full they are dropped and counted, and nothing else waits.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use url::form_urlencoded;
use zeroize::Zeroizing;

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

/// What a row of a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Something that was not there.
    Added,
    /// Something that is no longer there.
    Removed,
    /// Something that is different; what in it follows.
    Changed,
    /// A value before.
    Old,
    /// The value now.
    New,
    /// A remark.
    Note,
}

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is about.
    pub mark: Mark,
    /// Its words, without the sign that the mark becomes.
    pub text: String,
}

impl Mark {
    /// The sign that stands before the words.
    pub fn sign(self) -> &'static str {
        match self {
            Mark::Added => "+ ",
            Mark::Removed => "- ",
            Mark::Changed => "~ ",
            Mark::Old => "    - ",
            Mark::New => "    + ",
            Mark::Note => "",
        }
    }

    /// The terminal's code (ECMA-48 SGR): red for what is gone, green for what came, bold for a heading.
    fn colour(self) -> Option<&'static str> {
        match self {
            Mark::Removed | Mark::Old => Some("\x1b[31m"),
            Mark::Added | Mark::New => Some("\x1b[32m"),
            Mark::Changed => Some("\x1b[1m"),
            Mark::Note => None,
        }
    }
}

/// Ends any colour.
const PLAIN: &str = "\x1b[0m";
/// Rows of one comparison that are printed.
const MOST_ROWS: usize = 200;
/// Characters of one row.
const LONGEST_ROW: usize = 1000;

/// Whether the environment leaves room for colour: `NO_COLOR` unset or empty, and no terminal that is `dumb`.
pub fn may_colour(environment: &dyn Fn(&str) -> Option<String>) -> bool {
    environment("NO_COLOR").is_none_or(|value| value.is_empty())
        && environment("TERM").is_none_or(|value| value != "dumb")
}

/// A handle to the one writer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Report {
    loudest: Level,
    format: Format,
    colour: bool,
    queue: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
    secrets: Arc<Mutex<Vec<Secret>>>,
}

/// Below this a secret cannot be told from an ordinary word.
const SHORTEST_SECRET: usize = 4;
/// Secrets that are looked out for. Only session ids become more with time; the newest matter.
const MOST_SECRETS: usize = 1024;
/// What stands in the place of one.
const REDACTED: &str = "[redacted]";

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
        Report { loudest, format, colour: false, queue, dropped: Arc::default(), secrets: Arc::default() }
    }

    /// Colours rows where that is `allowed` (see [`may_colour`]), lines are for people and stderr is a terminal.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "it is only asked what it is")]
    pub fn coloured(mut self, allowed: bool) -> Self {
        self.colour = allowed && self.format == Format::Text && std::io::stderr().is_terminal();
        self
    }

    /// Looks out for a secret from now on: an endpoint may put into its own words what it was sent, in the spelling of a
    /// form or of JSON, too.
    pub fn conceal(&self, secret: &str) {
        if secret.len() < SHORTEST_SECRET {
            return;
        }
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let in_a_form =
            Zeroizing::new(form_urlencoded::byte_serialize(secret.as_bytes()).collect::<String>());
        let in_json = Zeroizing::new(serde_json::Value::from(secret).to_string());
        let in_json = in_json.trim_matches('"');
        for spelling in [secret, &in_a_form, in_json, &visible(secret, usize::MAX)] {
            if secrets.iter().any(|known| known.expose_secret() == spelling) {
                continue;
            }
            if secrets.len() == MOST_SECRETS {
                secrets.pop();
            }
            secrets.push(Secret::new(spelling.to_owned()));
        }
    }

    fn without_secrets(&self, message: &str) -> String {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().fold(message.to_owned(), |text, secret| {
            let secret = secret.expose_secret();
            let text = if text.contains(secret) { text.replace(secret, REDACTED) } else { text };
            without_cut(text, secret)
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

    /// Asks the user to do something, however quiet the rest is. What is asked is our own: a link is of no use with a part
    /// left out.
    pub fn prompt(&self, message: impl AsRef<str>) {
        self.print(Level::Info, visible(message.as_ref(), usize::MAX));
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

    /// Prints a comparison below the error line it belongs to. It waits in the queue as one entry, so that it is
    /// dropped and counted as a whole or not at all.
    pub fn rows(&self, rows: &[Row]) {
        if !rows.is_empty() {
            self.enqueue(self.lines_of(rows));
        }
    }

    fn lines_of(&self, rows: &[Row]) -> String {
        let mut out = String::new();
        for row in rows.iter().take(MOST_ROWS) {
            self.write_row(row, &mut out);
        }
        let Some(rest) = rows.get(MOST_ROWS..).filter(|rest| !rest.is_empty()) else { return out };
        // Remarks stand at the end and are about the whole.
        let (notes, left_out): (Vec<_>, Vec<_>) = rest.iter().partition(|row| row.mark == Mark::Note);
        if !left_out.is_empty() {
            let text = format!("… and {} more lines; see --inspect --json", left_out.len());
            self.write_row(&Row { mark: Mark::Note, text }, &mut out);
        }
        for note in notes {
            self.write_row(note, &mut out);
        }
        out
    }

    fn write_row(&self, row: &Row, out: &mut String) {
        let text = visible(&self.without_secrets(&row.text), LONGEST_ROW);
        let line = format!("{}{text}", row.mark.sign());
        match self.format {
            Format::Json => out.push_str(&json_line(Level::Error, line)),
            Format::Text => {
                // Colour comes last: nothing from outside is looked at any more.
                let (start, end) = match row.mark.colour().filter(|_| self.colour) {
                    Some(colour) => (colour, PLAIN),
                    None => ("", ""),
                };
                let _ = writeln!(out, "mcp-hasp:   {start}{line}{end}");
            }
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
        self.print(level, visible(&self.without_secrets(message), usize::MAX));
    }

    fn print(&self, level: Level, message: String) {
        let line = match self.format {
            Format::Text => match level {
                Level::Error | Level::Warning => format!("mcp-hasp: {}: {message}\n", level.name()),
                _ => format!("mcp-hasp: {message}\n"),
            },
            Format::Json => json_line(level, message),
        };
        self.enqueue(line);
    }

    fn enqueue(&self, line: String) {
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

/// Where a text was cut in the middle of a secret, its beginning goes too.
fn without_cut(mut text: String, secret: &str) -> String {
    let mut from = 0;
    while let Some(cut) = text.get(from..).and_then(|rest| rest.find('…')).map(|at| from + at) {
        let before = text.get(..cut).unwrap_or_default();
        let beginnings = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= SHORTEST_SECRET);
        let longest =
            beginnings.rev().find(|end| secret.get(..*end).is_some_and(|part| before.ends_with(part)));
        match longest {
            Some(length) => {
                text.replace_range(cut - length..cut, REDACTED);
                from = cut - length + REDACTED.len() + '…'.len_utf8();
            }
            None => from = cut + '…'.len_utf8(),
        }
    }
    text
}

fn json_line(level: Level, message: String) -> String {
    format!("{{\"level\":\"{}\",\"message\":{}}}\n", level.name(), serde_json::Value::from(message))
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

/// The same in quotes, as a JSON string: a name that is told of, or any other text within a sentence.
pub fn quoted(text: &str, limit: usize) -> String {
    visible(&serde_json::Value::from(text).to_string(), limit)
}

/// Whether a character shows nothing of its own, looks like a plain space, or moves what stands around it: the general
/// categories Cc, Cf, Zl, Zp and Zs but for the space, what Unicode calls default-ignorable (assigned or not), and
/// the few characters of other categories that are blank.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            // no-break space, soft hyphen, grapheme joiner
            0xa0 | 0xad | 0x34f
            // Arabic, Syriac and Kaithi number signs and marks, which take in what follows
            | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890 | 0x891 | 0x8e2 | 0x110bd | 0x110cd
            // Hangul fillers, Ogham space, Khmer inherent vowels, Mongolian selectors and separator
            | 0x115f | 0x1160 | 0x1680 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x3164 | 0xffa0
            // spaces, zero width, directional marks, overrides and isolates, separators, invisible operators
            | 0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f
            // empty Braille pattern, ideographic space
            | 0x2800 | 0x3000
            // variation selectors, byte-order mark, interlinear marks and the unassigned before them
            | 0xfe00..=0xfe0f | 0xfeff | 0xfff0..=0xfffb
            // Egyptian controls and blanks, Khitan filler, shorthand controls
            | 0x13430..=0x1343f | 0x13441 | 0x13442 | 0x16fe4 | 0x1bca0..=0x1bca3
            // musical null head and controls; tags, more variation selectors, unassigned
            | 0x1d159 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
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
    fn no_spelling_and_no_beginning_of_a_secret_is_said() {
        let report = Report::start(Level::Error, Format::Text);
        report.conceal("a+b/\"c\\d");
        for spelled in ["a+b/\"c\\d", "a%2Bb%2F%22c%5Cd", r#"a+b/\"c\\d"#] {
            assert_eq!(report.without_secrets(&format!("<{spelled}>")), "<[redacted]>", "{spelled}");
        }
        report.conceal("tok-123456");
        let said = |text: &str| report.without_secrets(text);
        assert_eq!(said("it was tok-12… or tok-1…, not tok…"), "it was [redacted]… or [redacted]…, not tok…");
        assert_eq!(said("… é… tok-123456…"), "… é… [redacted]…");
    }

    #[test]
    fn what_could_fool_a_reader_is_spelled_out() {
        assert_eq!(visible("a\u{1b}[31mb\r\n", 99), r"a\u{1b}[31mb\u{d}\u{a}");
        assert_eq!(visible("x\u{202e}y\u{200b}z\u{e0041}", 99), r"x\u{202e}y\u{200b}z\u{e0041}");
        assert_eq!(visible("Übung 東京 🎲", 99), "Übung 東京 🎲");
        assert_eq!(visible("abcdef", 3), "abc…");
    }

    #[test]
    fn every_kind_of_invisible_character_is_spelled_out() {
        for point in [
            0x0, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x600, 0x6dd, 0x115f, 0x1680, 0x17b5, 0x180e, 0x2003, 0x200d,
            0x2028, 0x2029, 0x202f, 0x2065, 0x2066, 0x2800, 0x3000, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff5,
            0xfff9, 0x13437, 0x1bca0, 0x1d159, 0x1d173, 0xe0001, 0xe01ef, 0xe0fff,
        ] {
            let character = char::from_u32(point).unwrap();
            assert_eq!(visible(&character.to_string(), 9), format!("\\u{{{point:x}}}"));
        }
        let legitimate = " ~¡ÿ€e\u{301}ש\u{5bc}عربي हिन्दी ไทย 한국어 东京🎲🧑🏽\u{fffd}\u{e000}\u{10ffff}";
        assert_eq!(visible(legitimate, 99), legitimate);
    }

    fn row(mark: Mark, text: &str) -> Row {
        Row { mark, text: text.into() }
    }

    #[test]
    fn a_row_is_one_line_in_which_nothing_from_outside_acts() {
        let mut report = Report::start(Level::Error, Format::Text);
        report.conceal("tok-1234");
        let rows = [row(Mark::Changed, "tool \"a\n\u{1b}[2J\u{202e}\" tok-1234"), row(Mark::Old, "5")];
        let plain = "mcp-hasp:   ~ tool \"a\\u{a}\\u{1b}[2J\\u{202e}\" [redacted]\nmcp-hasp:       - 5\n";
        assert_eq!(report.lines_of(&rows), plain);
        report.colour = true;
        let coloured = report.lines_of(&rows);
        assert_eq!(coloured.matches('\u{1b}').count(), 4, "a start and an end for each row");
        assert_eq!(coloured.replace("\u{1b}[1m", "").replace("\u{1b}[31m", "").replace(PLAIN, ""), plain);
        report.format = Format::Json;
        report.colour = false;
        for line in report.lines_of(&rows).lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["level"], "error");
            assert!(!line.contains('\u{1b}'));
        }
    }

    #[test]
    fn rows_beyond_the_limit_are_counted_and_remarks_are_kept() {
        let report = Report::start(Level::Error, Format::Text);
        let mut rows = vec![row(Mark::Added, "x"); MOST_ROWS + 5];
        rows.push(row(Mark::Note, "the end"));
        let lines = report.lines_of(&rows);
        assert_eq!(lines.lines().count(), MOST_ROWS + 2);
        assert!(
            lines.ends_with("mcp-hasp:   … and 5 more lines; see --inspect --json\nmcp-hasp:   the end\n")
        );
    }

    #[test]
    fn colour_is_left_out_where_the_environment_says_so() {
        let given = |name: &'static str, value: &'static str| {
            may_colour(&move |asked: &str| (asked == name).then(|| value.to_owned()))
        };
        assert!(given("NO_COLOR", "") && given("TERM", "xterm"));
        assert!(!given("NO_COLOR", "0") && !given("TERM", "dumb"));
        assert!(!Report::start(Level::Error, Format::Json).coloured(true).colour);
    }
}
