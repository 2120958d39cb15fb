//! Every way to end other than well: its exit code, what is wrong, whose fault it is, and what to do now.

use std::fmt;
use std::path::PathBuf;

use crate::endpoint::{SignInTrouble, Trouble};
use crate::net::EndpointUrl;
use crate::report::Row;
use crate::surface::Mismatch;

/// An exit code (after sysexits.h where one fits). README lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, or the harness closed stdin.
    Done = 0,
    /// A failure nobody foresaw.
    Unexpected = 1,
    /// The surface is not the pinned one, at start or later.
    Surface = 2,
    /// The command line is wrong.
    Usage = 64,
    /// An input file cannot be read.
    NoInput = 66,
    /// The endpoint cannot be reached, or is not an MCP server.
    Unavailable = 69,
    /// A file of this program's own cannot be read or written.
    Store = 74,
    /// Sign-in refused, timed out, or not possible here.
    NoPermission = 77,
    /// Interrupted by a signal.
    Interrupted = 130,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

/// Why the program ends.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong; the text says how to put it right.
    Usage(String),
    /// A mode that is not built yet.
    NotYet(&'static str),
    /// A file named on the command line cannot be used.
    File {
        /// The option that named it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No HTTP client could be built from the trust roots.
    TrustRoots(String),
    /// The surface is not the pinned one.
    Surface(Box<(EndpointUrl, Mismatch)>),
    /// A file of this program's own cannot be read or written.
    Store(String),
    /// There is no sign-in, in words for a person.
    SignIn(SignInTrouble, String),
    /// The endpoint did not let itself be opened.
    Opening(Box<(EndpointUrl, Trouble)>),
    /// The runtime could not be started.
    Runtime(std::io::Error),
}

impl Failure {
    /// What else there is to say, line by line.
    pub fn rows(&self) -> Vec<Row> {
        match self {
            Failure::Surface(surface) => surface.1.rows(),
            _ => Vec::new(),
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Failure::Usage(_) | Failure::NotYet(_) => Exit::Usage,
            Failure::File { .. } => Exit::NoInput,
            Failure::Surface(_) => Exit::Surface,
            Failure::Store(_) | Failure::SignIn(SignInTrouble::Store, _) => Exit::Store,
            Failure::SignIn(..) => Exit::NoPermission,
            Failure::TrustRoots(_) | Failure::Runtime(_) => Exit::Unexpected,
            Failure::Opening(opening) => match &opening.1 {
                Trouble::SignIn { kind: SignInTrouble::Store, .. } => Exit::Store,
                Trouble::SignIn { .. } | Trouble::SignInRequired { .. } | Trouble::Forbidden { .. } => {
                    Exit::NoPermission
                }
                Trouble::Unreachable(_)
                | Trouble::ConnectionLost
                | Trouble::HttpStatus { .. }
                | Trouble::Redirect { .. }
                | Trouble::ContentType { .. }
                | Trouble::ContentEncoding { .. }
                | Trouble::MalformedAnswer { .. }
                | Trouble::WrongId
                | Trouble::NoAnswer { .. }
                | Trouble::TooLarge { .. }
                | Trouble::SessionLost
                | Trouble::Refused { .. }
                | Trouble::NotMcp { .. }
                | Trouble::TimedOut { .. }
                | Trouble::Sealed
                | Trouble::ServerRequest { .. } => Exit::Unavailable,
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) => f.write_str(text),
            Failure::NotYet(mode) => {
                write!(f, "{mode} is not built yet in this version; leave it out to run the proxy")
            }
            Failure::File { option, path, why } => write!(f, "{option} {}: {why}", path.display()),
            Failure::TrustRoots(why) => write!(
                f,
                "no trusted root certificates could be loaded ({why}); install the system's CA certificates or give --ca-file PEM"
            ),
            Failure::Surface(surface) => {
                let (url, mismatch) = surface.as_ref();
                write!(f, "{url}: {mismatch}; {}", mismatch.advice())
            }
            Failure::Store(why) | Failure::SignIn(_, why) => f.write_str(why),
            Failure::Opening(opening) => {
                let (url, trouble) = opening.as_ref();
                write!(f, "{url}: {trouble}; {}", trouble.advice())
            }
            Failure::Runtime(error) => write!(f, "the runtime could not be started: {error}; try again"),
        }
    }
}

impl std::error::Error for Failure {}
