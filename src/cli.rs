//! The flags as typed. What they mean is decided in `config.rs`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser};

use crate::report::Format;

/// Lets a harness talk to one remote MCP server without having to trust it blindly.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-hasp",
    version,
    about = "A stdio MCP server that forwards to exactly one remote MCP endpoint",
    long_about = "A stdio MCP server that forwards to exactly one remote MCP endpoint.\n\n\
        A harness (Claude Code, Codex, Cursor, OpenCode, …) starts it; it is not meant to be typed at. \
        stdout carries MCP messages and nothing else, every diagnostic goes to stderr.",
    after_help = "Exit codes: 0 done, or the harness left · 1 unexpected failure · \
        2 the surface is not the pinned one · 64 bad command line · 66 an input file cannot be read · 69 endpoint unreachable or not an MCP server · \
        74 sign-ins or a lock cannot be stored · 77 sign-in refused, timed out or not possible · 130 interrupted",
    group(ArgGroup::new("mode").args(["login", "logout", "inspect", "write_lock", "print_config", "status"]))
)]
pub struct Cli {
    /// The one endpoint: https, or http on a loopback host
    #[arg(long, value_name = "URL", env = "MCP_HASP_URL", hide_env_values = true, help_heading = "Endpoint")]
    pub url: Option<String>,

    /// Bearer token; better given as MCP_HASP_TOKEN or with --token-file, where other users cannot see it
    #[arg(long, value_name = "TOKEN", help_heading = "Endpoint", conflicts_with = "token_file")]
    pub token: Option<String>,

    /// Read the bearer token from a file
    #[arg(long, value_name = "FILE", help_heading = "Endpoint")]
    pub token_file: Option<PathBuf>,

    /// Extra request header; ${VAR} in the value reads the environment, $${ is a literal ${
    #[arg(long = "header", value_name = "NAME: VALUE", help_heading = "Endpoint")]
    pub headers: Vec<String>,

    /// Read extra request headers from a file, one `Name: value` a line
    #[arg(long, value_name = "FILE", help_heading = "Endpoint")]
    pub header_file: Option<PathBuf>,

    /// Additional trusted root certificates
    #[arg(long, value_name = "PEM", help_heading = "Endpoint")]
    pub ca_file: Option<PathBuf>,

    /// Largest single message accepted from either side, in bytes
    #[arg(long, value_name = "N", default_value_t = 32 * 1024 * 1024, help_heading = "Limits")]
    pub max_message_bytes: usize,

    /// Let the endpoint ask the harness's model for completions (sampling/createMessage)
    #[arg(long, help_heading = "Limits")]
    pub allow_sampling: bool,

    /// Let the endpoint ask which folders the harness works in (roots/list)
    #[arg(long, help_heading = "Limits")]
    pub allow_roots: bool,

    /// Refuse to start unless the surface has this hash: hasp1:sha256:… is computed here, any other text is the hash that
    /// the endpoint declares; also MCP_HASP_EXPECT_HASH, comma separated
    #[arg(long, value_name = "HASH", help_heading = "Pinning")]
    pub expect_hash: Vec<String>,

    /// Refuse to start unless the surface equals the one recorded in this file; `auto` keeps the file in the config dir and
    /// writes it at first use
    #[arg(long, value_name = "FILE", help_heading = "Pinning")]
    pub lock: Option<PathBuf>,

    /// Record the surface in the lock (without --lock: the automatic one) and exit; with --expect-hash only if it matches
    #[arg(long, help_heading = "Pinning")]
    pub write_lock: bool,

    /// Print the surface, its hashes, its findings and what is different from the lock, and exit
    #[arg(long, help_heading = "Pinning")]
    pub inspect: bool,

    /// With --inspect: print it for programs
    #[arg(long, requires = "inspect", help_heading = "Pinning")]
    pub json: bool,

    /// Where automatic locks and sign-ins live; also MCP_HASP_CONFIG_DIR
    #[arg(long, value_name = "DIR", help_heading = "Pinning")]
    pub config_dir: Option<PathBuf>,

    /// Say more on stderr: -v events of the session, -vv one line per request
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Diagnostics")]
    pub verbose: u8,

    /// Say only what went wrong
    #[arg(long, conflicts_with = "verbose", help_heading = "Diagnostics")]
    pub quiet: bool,

    /// How lines on stderr look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Diagnostics")]
    pub log_format: Format,

    /// Sign in ahead of time, store the sign-in and exit
    #[arg(long, help_heading = "Sign-in", conflicts_with_all = ["token", "token_file"])]
    pub login: bool,

    /// Revoke and forget the stored sign-in and exit
    #[arg(long, help_heading = "Sign-in")]
    pub logout: bool,

    /// List the stored sign-ins and exit; needs no --url
    #[arg(long, help_heading = "Sign-in")]
    pub status: bool,

    /// Print the sign-in link and open no browser
    #[arg(long, help_heading = "Sign-in")]
    pub no_browser: bool,

    /// Sign in as this client, for authorization servers where clients cannot register themselves
    #[arg(long, value_name = "ID", help_heading = "Sign-in")]
    pub client_id: Option<String>,

    /// Read the client's secret from a file
    #[arg(long, value_name = "FILE", help_heading = "Sign-in", requires = "client_id")]
    pub client_secret_file: Option<PathBuf>,

    /// Sign in as the client that this document describes, where the authorization server takes such documents
    #[arg(long, value_name = "URL", help_heading = "Sign-in", conflicts_with = "client_id")]
    pub client_metadata_url: Option<String>,

    /// Ask for these scopes (separated by blanks) in place of those that the endpoint names
    #[arg(long, value_name = "SCOPES", help_heading = "Sign-in")]
    pub scope: Option<String>,

    /// Have the browser come back to this port of 127.0.0.1, where the authorization server knows one alone
    #[arg(long, value_name = "PORT", help_heading = "Sign-in", value_parser = clap::value_parser!(u16).range(1..))]
    pub callback_port: Option<u16>,

    /// Sign in with this authorization server alone, whatever the endpoint names
    #[arg(long, value_name = "URL", help_heading = "Sign-in")]
    pub issuer: Option<String>,

    /// Ask for tokens for this resource in place of the one that the endpoint names
    #[arg(long, value_name = "URI", help_heading = "Sign-in")]
    pub resource: Option<String>,

    /// Print the entry for a harness's config and exit (not yet)
    #[arg(long, value_name = "HARNESS", hide = true)]
    pub print_config: Option<String>,

    /// Wake a Claude Code session when the agent is seated, a match ends, an approval is resolved or its owner writes
    #[arg(long, help_heading = "Channel", conflicts_with = "mode")]
    pub channel: bool,

    /// With --channel: resources whose URI begins so are statuses too; repeatable
    #[arg(long, value_name = "PREFIX", help_heading = "Channel", requires = "channel")]
    pub channel_resource: Vec<String>,

    /// With --channel: call this read-only tool again and again; wake when the field of its result becomes true or changes
    #[arg(long, value_name = "TOOL[:FIELD]", help_heading = "Channel", requires = "channel")]
    pub channel_wait: Option<String>,

    /// The arguments of --channel-wait, a JSON object
    #[arg(long, value_name = "JSON", help_heading = "Channel", requires = "channel_wait")]
    pub channel_wait_args: Option<String>,
}
