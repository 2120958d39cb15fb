//! What the reader of the demonstration sees: who spoke to whom, and a tick for each thing that was proven.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// The page being written, on stdout.
pub(crate) struct Page {
    colour: bool,
    proven: usize,
    /// The times in the margin count from here.
    start: Instant,
}

/// Who speaks to whom. The three parties stand side by side, so that the eye can follow a message.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// The harness writes a line to mcp-hasp's stdin.
    Asks,
    /// mcp-hasp writes a line to its stdout.
    Tells,
    /// mcp-hasp sends an HTTP request to the endpoint.
    Forwards,
    /// mcp-hasp hangs up on a request.
    Drops,
}

impl Page {
    /// Colour is for people: only on a terminal, and not where it is unwanted.
    #[allow(clippy::disallowed_methods, reason = "this program is no MCP server: its stdout is for a reader")]
    pub(crate) fn new() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = std::io::stdout().is_terminal() && !unwanted;
        Self { colour, proven: 0, start: Instant::now() }
    }

    /// A line as it is.
    pub(crate) fn line(&self, text: impl Display) {
        write_line(text);
    }

    /// A heading; the times in the margin start again from here.
    pub(crate) fn heading(&mut self, text: &str) {
        self.start = Instant::now();
        write_line(format_args!("\n{}\n", self.painted(BOLD, text)));
    }

    /// Somebody says something, now.
    pub(crate) fn said(&self, way: Way, what: impl Display) {
        self.said_at(Instant::now(), way, what);
    }

    /// The same for something that was noticed a moment ago.
    pub(crate) fn said_at(&self, at: Instant, way: Way, what: impl Display) {
        let since = at.saturating_duration_since(self.start).as_millis();
        let who = match way {
            Way::Asks => "harness → mcp-hasp",
            Way::Tells => "harness ← mcp-hasp",
            Way::Forwards => "          mcp-hasp → endpoint",
            Way::Drops => "          mcp-hasp × endpoint",
        };
        write_line(format_args!(
            "{} {} {what}",
            self.painted(DIM, &format!("{since:>5} ms ")),
            format_args!("{who:<30}")
        ));
    }

    /// One thing has been shown to be so.
    pub(crate) fn proven(&mut self, what: impl Display) {
        self.proven += 1;
        write_line(format_args!("        {} {what}", self.painted(GREEN, "✓")));
    }

    /// How many things were proven so far.
    pub(crate) fn count(&self) -> usize {
        self.proven
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The one line of a demonstration that did not work out.
#[allow(clippy::disallowed_methods, reason = "this program is no MCP server: its stderr is its own")]
pub(crate) fn failure(why: impl Display) {
    let _ = writeln!(std::io::stderr(), "demo: {why}");
}

#[allow(clippy::disallowed_methods, reason = "this program is no MCP server: its stdout is for a reader")]
fn write_line(text: impl Display) {
    // a reader that went away, as in `… | head`, is no failure of what is being shown
    let _ = writeln!(std::io::stdout(), "{text}");
}

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
