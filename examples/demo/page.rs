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
    /// The harness says something that is meant for mcp-hasp.
    Asks,
    /// The endpoint's word, passed on to the harness.
    Back,
    /// mcp-hasp hangs up on a call, as the harness wishes.
    Drops,
    /// mcp-hasp asks the endpoint of its own accord.
    Reads,
    /// mcp-hasp answers from what it has read already.
    Tells,
    /// The harness's word, passed on to the endpoint.
    Through,
    /// mcp-hasp tells the person who set it up, on stderr.
    Warns,
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
            Way::Back => "harness ← mcp-hasp ← endpoint",
            Way::Drops => "harness → mcp-hasp × endpoint",
            Way::Reads => "          mcp-hasp → endpoint",
            Way::Tells => "harness ← mcp-hasp",
            Way::Through => "harness → mcp-hasp → endpoint",
            Way::Warns => "   user ← mcp-hasp",
        };
        let margin = self.painted(DIM, &format!("{since:>5} ms "));
        write_line(format_args!("{margin} {who:<29}  {what}"));
    }

    /// Somebody's own words, in lines that fit on a page.
    pub(crate) fn quoted(&self, text: &str) {
        if text.chars().count() <= WIDEST {
            return write_line(format_args!("        {} {text}", self.painted(DIM, "|")));
        }
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + word.chars().count() >= WIDEST {
                write_line(format_args!("        {} {line}", self.painted(DIM, "|")));
                line.clear();
            }
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
        write_line(format_args!("        {} {line}", self.painted(DIM, "|")));
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

/// The one line of a demonstration that did not work out. What others said is part of it: it is kept short and
/// loses what could steer a terminal.
#[allow(clippy::disallowed_methods, reason = "this program is no MCP server: its stderr is its own")]
pub(crate) fn failure(why: impl Display) {
    let why = why.to_string();
    let mut line: String = why.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if why.chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    let _ = writeln!(std::io::stderr(), "demo: {line}");
}

#[allow(clippy::disallowed_methods, reason = "this program is no MCP server: its stdout is for a reader")]
fn write_line(text: impl Display) {
    // a reader that went away, as in `… | head`, is no failure of what is being shown
    let _ = writeln!(std::io::stdout(), "{text}");
}

const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const LONGEST: usize = 400;
const WIDEST: usize = 100;
