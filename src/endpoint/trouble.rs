//! What can go wrong between us and the endpoint, with the words for a program and for a person.

use std::fmt;
use std::sync::Arc;

use super::challenge::Challenge;

/// Why a request to the endpoint has no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No connection came about, so nothing was sent.
    Unreachable(String),
    /// The connection broke before the answer was whole. The endpoint may have acted.
    ConnectionLost,
    /// A status that is not a success, without a JSON-RPC error for our request.
    HttpStatus {
        /// The status.
        status: u16,
        /// `Retry-After` in seconds (RFC 9110 §10.2.3).
        retry_after: Option<u64>,
    },
    /// A redirect, which is never followed.
    Redirect {
        /// The status.
        status: u16,
        /// Origin and path of the target.
        target: Option<String>,
        /// The target is of the endpoint's own origin.
        same_origin: bool,
    },
    /// A success of a media type that is neither JSON nor an event stream.
    ContentType {
        /// What the endpoint said.
        found: String,
        /// The status.
        status: u16,
    },
    /// A compressed body, which we did not ask for.
    ContentEncoding(String),
    /// The answer is not one JSON-RPC message.
    MalformedAnswer(String),
    /// The answer names another request.
    WrongId,
    /// The endpoint accepted the request and said nothing.
    NoAnswer {
        /// The status.
        status: u16,
    },
    /// The answer is larger than `--max-message-bytes`.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The endpoint forgot the session.
    SessionLost,
    /// 401: no token, or the token is not accepted.
    SignInRequired {
        /// A token was sent.
        had_token: bool,
        /// The command that signs in, where that is possible.
        login: Option<Arc<str>>,
        /// What the endpoint says about it.
        challenge: Box<Challenge>,
    },
    /// The token is there to be had, and is not.
    SignIn {
        /// What kind of trouble it is.
        kind: SignInTrouble,
        /// What is wrong, whose fault it is and what to do, for a person.
        why: Arc<str>,
        /// The command that signs in.
        login: Arc<str>,
        /// Seconds to wait (RFC 9110 §10.2.3).
        retry_after: Option<u64>,
    },
    /// 403.
    Forbidden {
        /// The scopes the endpoint asks for (RFC 6750 §3.1 `insufficient_scope`).
        scope: Option<String>,
        /// The command that signs in, where that is possible.
        login: Option<Arc<str>>,
    },
    /// The endpoint answered a request of our own with a JSON-RPC error.
    Refused {
        /// The method we sent.
        method: String,
        /// The error's code.
        code: String,
        /// The error's message.
        message: String,
    },
    /// What answers there does not speak MCP, or no revision that we speak.
    NotMcp(String),
    /// No answer to a request of our own in time.
    TimedOut {
        /// The limit in seconds.
        seconds: u64,
    },
    /// A request where the protocol allows none.
    ServerRequest(String),
    /// The surface is not the pinned one: nothing is sent any more, and nothing passes.
    Sealed,
}

/// Why a sign-in has no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInTrouble {
    /// The user is being asked.
    Waiting,
    /// It could not be renewed for the moment, and is kept.
    Passing,
    /// It was refused, timed out, or is not possible.
    Failed,
    /// Its file cannot be read or written.
    Store,
}

impl Trouble {
    /// A word for programs: `data.reason` of the JSON-RPC error.
    pub fn reason(&self) -> &'static str {
        match self {
            Trouble::Unreachable(_) => "endpoint_unreachable",
            Trouble::ConnectionLost => "connection_lost",
            Trouble::HttpStatus { status: 429, .. } => "rate_limited",
            Trouble::HttpStatus { .. } => "http_status",
            Trouble::Redirect { .. } => "redirect",
            Trouble::ContentType { .. } => "content_type",
            Trouble::ContentEncoding(_) => "content_encoding",
            Trouble::MalformedAnswer(_) => "malformed_answer",
            Trouble::WrongId => "wrong_id",
            Trouble::NoAnswer { .. } => "no_answer",
            Trouble::TooLarge { .. } => "too_large",
            Trouble::SessionLost => "session_lost",
            Trouble::SignInRequired { .. } => "sign_in_required",
            Trouble::SignIn { kind, .. } => match kind {
                SignInTrouble::Waiting => "sign_in_pending",
                SignInTrouble::Passing => "sign_in_unavailable",
                SignInTrouble::Failed => "sign_in_required",
                SignInTrouble::Store => "sign_in_store",
            },
            Trouble::Forbidden { scope: Some(_), .. } => "insufficient_scope",
            Trouble::Forbidden { scope: None, .. } => "forbidden",
            Trouble::Refused { .. } => "refused",
            Trouble::NotMcp(_) => "not_mcp",
            Trouble::TimedOut { .. } => "timed_out",
            Trouble::ServerRequest(_) => "protocol_violation",
            Trouble::Sealed => "surface_changed",
        }
    }

    /// The HTTP status, where there is one to tell.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Trouble::HttpStatus { status, .. }
            | Trouble::Redirect { status, .. }
            | Trouble::ContentType { status, .. }
            | Trouble::NoAnswer { status } => Some(*status),
            Trouble::SessionLost => Some(404),
            Trouble::SignInRequired { .. } => Some(401),
            Trouble::Forbidden { .. } => Some(403),
            _ => None,
        }
    }

    /// After how many seconds the endpoint asks to be tried again.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Trouble::HttpStatus { retry_after, .. } | Trouble::SignIn { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether it may be over in a moment, and says nothing about what the endpoint is.
    pub fn is_passing(&self) -> bool {
        match self {
            Trouble::Unreachable(_) | Trouble::ConnectionLost => true,
            Trouble::SignIn { kind, .. } => *kind == SignInTrouble::Passing,
            Trouble::HttpStatus { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// Whether the endpoint may have acted on the request all the same.
    pub fn may_have_run(&self) -> bool {
        match self {
            Trouble::ConnectionLost
            | Trouble::ContentType { .. }
            | Trouble::ContentEncoding(_)
            | Trouble::MalformedAnswer(_)
            | Trouble::WrongId
            | Trouble::NoAnswer { .. }
            | Trouble::TooLarge { .. }
            | Trouble::TimedOut { .. }
            | Trouble::ServerRequest(_) => true,
            Trouble::HttpStatus { status, .. } => *status >= 500,
            _ => false,
        }
    }

    /// What a user can do at start.
    pub fn advice(&self) -> String {
        match self {
            Trouble::Unreachable(why) if why.contains("ertificate") => {
                "if a private authority signed it, give its root with --ca-file PEM".into()
            }
            Trouble::Unreachable(_) => "check the URL, the network and HTTPS_PROXY, then start again".into(),
            Trouble::Redirect { target: Some(target), same_origin: true, .. } => {
                format!("use --url {target}")
            }
            Trouble::Redirect { .. } => {
                "redirects are never followed; ask the operator for the final URL".into()
            }
            Trouble::SignInRequired { login: Some(login), .. }
            | Trouble::Forbidden { scope: Some(_), login: Some(login) } => {
                format!("run {login} in a terminal, then try again")
            }
            Trouble::SignInRequired { login: None, .. } => {
                "give a valid token with --token-file or MCP_HASP_TOKEN".into()
            }
            Trouble::SignIn { kind: SignInTrouble::Passing, .. } => {
                "it passes by itself: try again in a moment".into()
            }
            Trouble::SignIn { login, .. } => format!("then run {login} in a terminal"),
            Trouble::Forbidden { login: Some(_), .. } => {
                "ask the operator for access with this sign-in".into()
            }
            Trouble::Forbidden { login: None, .. } => "ask the operator for access with this token".into(),
            Trouble::HttpStatus { status: 429, .. } => "wait, then start again".into(),
            Trouble::HttpStatus { status, .. } if *status >= 500 => {
                "the endpoint is at fault; start again later or tell its operator".into()
            }
            Trouble::TooLarge { .. } => "raise --max-message-bytes if this is expected".into(),
            _ => {
                "check that the URL is that of an MCP endpoint (Streamable HTTP), or tell its operator".into()
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(why) => write!(f, "the endpoint cannot be reached ({why})"),
            Trouble::ConnectionLost => {
                f.write_str("the connection to the endpoint broke before the answer was complete")
            }
            Trouble::HttpStatus { status, retry_after: Some(seconds) } => {
                write!(f, "the endpoint answered HTTP {status} and asks to wait {seconds} s")
            }
            Trouble::HttpStatus { status, retry_after: None } => {
                write!(f, "the endpoint answered HTTP {status}")
            }
            Trouble::Redirect { status, target: Some(target), .. } => {
                write!(
                    f,
                    "the endpoint answered HTTP {status} with a redirect to {target}, which is not followed"
                )
            }
            Trouble::Redirect { status, target: None, .. } => {
                write!(f, "the endpoint answered HTTP {status}, a redirect, which is not followed")
            }
            Trouble::ContentType { found, status } => {
                write!(
                    f,
                    "the endpoint answered HTTP {status} with {found} instead of JSON or an event stream"
                )
            }
            Trouble::ContentEncoding(found) => {
                write!(f, "the endpoint sent a body compressed as {found}, which was not asked for")
            }
            Trouble::MalformedAnswer(why) => write!(f, "the endpoint's answer is malformed ({why})"),
            Trouble::WrongId => f.write_str("the endpoint answered another request than this one"),
            Trouble::NoAnswer { status } => {
                write!(f, "the endpoint ended its response (HTTP {status}) without an answer")
            }
            Trouble::TooLarge { limit } => {
                write!(
                    f,
                    "the endpoint's answer is larger than the limit of {limit} bytes (--max-message-bytes)"
                )
            }
            Trouble::SessionLost => f.write_str("the endpoint no longer knows the session"),
            Trouble::SignIn { why, .. } => f.write_str(why),
            Trouble::SignInRequired { had_token: true, .. } => {
                f.write_str("the endpoint does not accept the token (HTTP 401)")
            }
            Trouble::SignInRequired { had_token: false, .. } => {
                f.write_str("the endpoint asks for a sign-in (HTTP 401)")
            }
            Trouble::Forbidden { scope: Some(scope), .. } => {
                write!(f, "the token lacks the scope {scope} (HTTP 403)")
            }
            Trouble::Forbidden { scope: None, .. } => f.write_str("the endpoint refuses access (HTTP 403)"),
            Trouble::Refused { method, code, message } => {
                write!(f, "the endpoint answered {method} with error {code}: {message}")
            }
            Trouble::NotMcp(why) => write!(f, "no MCP server that this version can talk to ({why})"),
            Trouble::TimedOut { seconds } => write!(f, "the endpoint did not answer within {seconds} s"),
            Trouble::ServerRequest(method) => {
                write!(f, "the endpoint sent a request ({method}) where the protocol allows none")
            }
            // Nothing of what is different: these words reach the model.
            Trouble::Sealed => f.write_str(
                "the endpoint's tools, prompts, instructions or skills are not what was agreed to; nothing passes any more, \
                 the user finds the difference on stderr of mcp-hasp and with mcp-hasp --inspect",
            ),
        }
    }
}
