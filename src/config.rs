//! What the command line and the environment mean. Every check on them happens here, once.

use std::path::{Path, PathBuf};

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use url::Url;

use crate::channel;
use crate::cli::Cli;
use crate::endpoint::challenge::scopes;
use crate::failure::Failure;
use crate::limits::{Allow, Limits};
use crate::net::{EndpointUrl, NamedUrl, Reach};
use crate::report::{Format, Level, visible};
use crate::secret::{AccessToken, ClientSecret, Secret};
use crate::signin::{self, browser};
use crate::store;
use crate::store::FileProblem;
use crate::surface::pin::PinnedLock;
use crate::surface::{Authorization, ExpectedHash, Lock, Pin};

/// A checked command line.
#[derive(Debug)]
pub struct Config {
    /// The one endpoint.
    pub url: EndpointUrl,
    /// A pasted token: no sign-in, nothing stored.
    pub token: Option<AccessToken>,
    /// How to sign in; none where a token or an `Authorization` header is given, or there is nowhere to store a sign-in.
    pub sign_in: Option<SignInConfig>,
    /// Extra request headers for the endpoint alone.
    pub headers: HeaderMap,
    /// Roots trusted beside the system's.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// Sizes and counts.
    pub limits: Limits,
    /// What the endpoint may ask of the harness beyond questions to the user.
    pub allow: Allow,
    /// The wake channel, where it is wanted.
    pub channel: Option<channel::Options>,
    /// What is to be done.
    pub mode: Mode,
    /// What the user agreed to.
    pub pin: Pin,
    /// Where the lock is, if there is to be one.
    pub lock: Option<LockPlace>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Run the proxy.
    Serve,
    /// Print the surface.
    Inspect {
        /// For programs.
        json: bool,
    },
    /// Record the surface.
    WriteLock,
    /// Sign in.
    Login,
    /// Sign out.
    Logout,
}

/// How to sign in.
#[derive(Clone, Debug)]
pub struct SignInConfig {
    /// The folder that sign-ins are stored in.
    pub folder: PathBuf,
    /// What the user says about it.
    pub options: signin::Options,
    /// The command that signs in, to be pasted into a terminal.
    pub login: String,
}

/// Where a lock is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlace {
    /// Its file.
    pub path: PathBuf,
    /// In the config dir, written at first use; not a file that the user named.
    pub automatic: bool,
}

/// Names of environment variables that hold a token, first one wins.
const TOKEN_VARIABLES: [&str; 2] = ["MCP_HASP_TOKEN", "PLAYERTHREE_TOKEN"];
/// Holds pins, as `--expect-hash` does.
const EXPECT_HASH_VARIABLE: &str = "MCP_HASP_EXPECT_HASH";
/// No file named on the command line is larger than this.
const MAX_FILE: u64 = 1024 * 1024;
/// A lock is no larger than this, in bytes.
pub const MAX_LOCK: u64 = 64 * 1024 * 1024;
/// The value of `--lock` that means the automatic one.
const AUTOMATIC: &str = "auto";

/// How loud stderr is.
pub fn level(cli: &Cli) -> (Level, Format) {
    let level = match (cli.quiet, cli.verbose) {
        (true, _) => Level::Error,
        (false, 0) => Level::Info,
        (false, 1) => Level::Verbose,
        (false, _) => Level::Debug,
    };
    (level, cli.log_format)
}

impl Config {
    /// Checks a command line. `environment` looks a variable up.
    ///
    /// # Errors
    /// [`Failure::Usage`] (64) for a bad value, [`Failure::File`] (66) for a file that cannot be read.
    pub fn new(cli: Cli, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        refuse_unbuilt_modes(&cli)?;
        let mode = match () {
            () if cli.inspect => Mode::Inspect { json: cli.json },
            () if cli.write_lock => Mode::WriteLock,
            () if cli.login => Mode::Login,
            () if cli.logout => Mode::Logout,
            () => Mode::Serve,
        };
        let url = cli
            .url
            .as_deref()
            .filter(|url| !url.is_empty())
            .ok_or_else(|| usage("no endpoint given; add --url https://… (or set MCP_HASP_URL)"))?;
        let url = EndpointUrl::parse(url).map_err(|why| usage(format!("--url {why}")))?;
        if cli.max_message_bytes < 1024 {
            return Err(usage("--max-message-bytes must be at least 1024"));
        }
        let token = token(&cli, environment)?;
        let headers = headers(&cli, environment)?;
        let extra_roots = extra_roots(cli.ca_file.as_deref())?;
        let sign_in = match mode {
            Mode::Login | Mode::Logout => {
                if mode == Mode::Login && (token.is_some() || headers.contains_key(AUTHORIZATION)) {
                    return Err(usage(
                        "--login: a token is given (--token, --header, MCP_HASP_TOKEN or PLAYERTHREE_TOKEN), so no sign-in would be used; take it away",
                    ));
                }
                Some(sign_in_config(&cli, &url, &extra_roots, environment)?.ok_or_else(no_folder)?)
            }
            _ if token.is_some() || headers.contains_key(AUTHORIZATION) => None,
            _ => sign_in_config(&cli, &url, &extra_roots, environment)?,
        };
        let lock = lock_place(&cli, mode, &url, environment)?;
        let authorization = match token {
            Some(_) => Authorization::Token,
            None => Authorization::None,
        };
        let pin = Pin {
            hashes: expected_hashes(&cli, environment)?,
            lock: lock.as_ref().map(|place| pinned_lock(place, mode, &url)).transpose()?.flatten(),
            authorization,
        };
        Ok(Config {
            token,
            sign_in,
            headers,
            extra_roots,
            limits: Limits { message_bytes: cli.max_message_bytes, pages: 1000, requests: 4096 },
            channel: cli.channel.then(|| channel_options(&cli)).transpose()?,
            allow: Allow { sampling: cli.allow_sampling, roots: cli.allow_roots },
            mode,
            pin,
            lock,
            url,
        })
    }
}

impl Config {
    /// What must not be said, whoever says it: whole values, and each word of one.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> =
            self.token.iter().map(|AccessToken(token)| token.expose_secret().to_owned()).collect();
        for value in self.headers.values().filter_map(|value| value.to_str().ok()) {
            secrets.push(value.to_owned());
            secrets.extend(value.split_ascii_whitespace().filter(|word| !is_scheme(word)).map(str::to_owned));
        }
        secrets.extend(self.url.as_url().query().map(str::to_owned));
        secrets.extend(self.url.as_url().query_pairs().map(|(_, value)| value.into_owned()));
        let client_secret = self.sign_in.iter().filter_map(|sign_in| sign_in.options.client_secret.as_ref());
        secrets.extend(client_secret.map(|ClientSecret(secret)| secret.expose_secret().to_owned()));
        // The longest first, so that no rest of one is left.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
    }
}

/// The first word of an `Authorization` value is no secret (RFC 9110 §11.1).
fn is_scheme(word: &str) -> bool {
    ["basic", "bearer", "digest", "token"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn refuse_unbuilt_modes(cli: &Cli) -> Result<(), Failure> {
    match cli.print_config {
        Some(_) => Err(Failure::NotYet("--print-config")),
        None => Ok(()),
    }
}

fn channel_options(cli: &Cli) -> Result<channel::Options, Failure> {
    if let Some(wrong) = cli.channel_resource.iter().find(|prefix| Url::parse(prefix).is_err()) {
        return Err(usage(format!(
            "--channel-resource {} is not how a URI begins; write scheme://…",
            visible(wrong, 100)
        )));
    }
    let wait = cli.channel_wait.as_deref().map(|text| {
        let (tool, field) = match text.split_once(':') {
            Some((tool, field)) => (tool, Some(field.to_owned())),
            None => (text, None),
        };
        if tool.is_empty() || field.as_deref() == Some("") {
            return Err(usage("--channel-wait must read TOOL or TOOL:FIELD"));
        }
        let arguments = cli.channel_wait_args.clone().unwrap_or_else(|| "{}".into());
        if !matches!(serde_json::from_str(&arguments), Ok(serde_json::Value::Object(_))) {
            return Err(usage("--channel-wait-args must be a JSON object"));
        }
        Ok(channel::Wait { tool: tool.to_owned(), field, arguments })
    });
    Ok(channel::Options { resources: cli.channel_resource.clone(), wait: wait.transpose()? })
}

/// The flag and the variable both count: a pin that is given and not kept would be worse than none.
fn expected_hashes(
    cli: &Cli,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<ExpectedHash>, Failure> {
    let read = |source: &str, text: &str| {
        ExpectedHash::parse(text)
            .map_err(|why| usage(format!("{source} {} {why}", visible(text.trim(), 100))))
    };
    let variable = environment(EXPECT_HASH_VARIABLE).unwrap_or_default();
    let from_flag = cli.expect_hash.iter().map(|text| read("--expect-hash", text));
    let from_variable = variable
        .split(',')
        .filter(|_| !variable.trim().is_empty())
        .map(|text| read(EXPECT_HASH_VARIABLE, text));
    from_flag.chain(from_variable).collect()
}

fn lock_place(
    cli: &Cli,
    mode: Mode,
    url: &EndpointUrl,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<LockPlace>, Failure> {
    match &cli.lock {
        Some(file) if file.as_os_str().is_empty() => {
            Err(usage("--lock is empty; name a file, or write --lock auto"))
        }
        Some(file) if file.as_os_str() != AUTOMATIC => {
            Ok(Some(LockPlace { path: file.clone(), automatic: false }))
        }
        None if mode != Mode::WriteLock => Ok(None),
        _ => {
            let folder = config_dir(cli, environment)?.ok_or_else(|| {
                usage("--lock auto: there is no config dir; give --config-dir, or set MCP_HASP_CONFIG_DIR or HOME")
            })?;
            let path = store::auto_lock_path(&folder, url.as_url().as_str());
            Ok(Some(LockPlace { path, automatic: true }))
        }
    }
}

/// The lock that is to be kept. A missing one is written at first use where it is automatic; where one is to be written
/// anyway, an unusable one is replaced.
fn pinned_lock(place: &LockPlace, mode: Mode, url: &EndpointUrl) -> Result<Option<PinnedLock>, Failure> {
    if mode == Mode::WriteLock {
        return Ok(None);
    }
    let path = &place.path;
    let wrong = |why: String| Failure::File { option: "--lock", path: path.clone(), why };
    let text = match store::read_whole(path, MAX_LOCK) {
        Ok(text) => text,
        Err(FileProblem::Missing) if place.automatic => return Ok(None),
        Err(FileProblem::Missing) => {
            return Err(wrong(
                "there is no such file; write it with --write-lock, or name the right one".into(),
            ));
        }
        Err(problem) => return Err(wrong(problem.to_string())),
    };
    let lock = Lock::read(&text, &url.to_string()).map_err(|why| wrong(why.to_string()))?;
    Ok(Some(PinnedLock { file: path.display().to_string(), lock }))
}

fn token(cli: &Cli, environment: &dyn Fn(&str) -> Option<String>) -> Result<Option<AccessToken>, Failure> {
    let (source, text) = if let Some(path) = &cli.token_file {
        ("--token-file", read_text("--token-file", path)?)
    } else if let Some(token) = &cli.token {
        ("--token", token.clone())
    } else {
        let found = TOKEN_VARIABLES
            .iter()
            .find_map(|name| Some((*name, environment(name).filter(|t| !t.is_empty())?)));
        match found {
            Some(found) => found,
            None => return Ok(None),
        }
    };
    let token = Secret::new(text.trim().to_owned());
    // RFC 6750 §2.1: visible ASCII, so nothing can be smuggled into the header.
    let plain = !token.expose_secret().is_empty()
        && token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic());
    if !plain {
        return Err(usage(format!(
            "{source} does not hold a bearer token (visible ASCII characters, no blanks)"
        )));
    }
    Ok(Some(AccessToken(token)))
}

fn headers(cli: &Cli, environment: &dyn Fn(&str) -> Option<String>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    let mut lines = cli.headers.clone();
    if let Some(path) = &cli.header_file {
        let text = read_text("--header-file", path)?;
        lines.extend(
            text.lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .map(str::to_owned),
        );
    }
    for line in lines {
        let (name, value) = header(&line, environment)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Headers that the protocol or the connection sets.
fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("mcp-")
        || matches!(
            name,
            "accept"
                | "accept-encoding"
                | "connection"
                | "content-encoding"
                | "content-length"
                | "content-type"
                | "cookie"
                | "expect"
                | "host"
                | "last-event-id"
                | "origin"
                | "te"
                | "trailer"
                | "transfer-encoding"
                | "upgrade"
        )
}

fn header(
    line: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(HeaderName, HeaderValue), Failure> {
    let (name, value) = line.split_once(':').ok_or_else(|| {
        usage("--header must read 'Name: value' as one argument; quote it, or write Name:${VAR} where blanks split arguments")
    })?;
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| usage("--header has a name that is not an HTTP field name (RFC 9110 §5.1)"))?;
    if is_reserved(&name) {
        return Err(usage(format!("--header cannot set {name}: the protocol or the connection sets it")));
    }
    let value = expand(value.trim(), environment).map_err(|variable| {
        usage(format!("--header {name}: the environment variable {variable} is not set or empty"))
    })?;
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
        usage(format!("--header {name}: the value holds a control character or is not plain text"))
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Replaces `${VAR}`; `$${` stands for `${`. What a variable holds is not expanded again.
fn expand(value: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let (name, after) = after.split_once('}').ok_or_else(|| format!("{after} (no closing brace)"))?;
        out.push_str(&environment(name).filter(|text| !text.is_empty()).ok_or(name)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn extra_roots(path: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let wrong = |why: &str| Failure::File { option: "--ca-file", path: path.into(), why: why.into() };
    let text = read_text("--ca-file", path)?;
    let roots: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|_| wrong("holds a damaged certificate"))?;
    if roots.is_empty() {
        return Err(wrong("holds no PEM certificate"));
    }
    let (_, unusable) = RootCertStore::empty().add_parsable_certificates(roots.iter().cloned());
    if unusable > 0 {
        return Err(wrong("holds a damaged certificate"));
    }
    Ok(roots)
}

fn read_text(option: &'static str, path: &Path) -> Result<String, Failure> {
    let wrong = |why: String| Failure::File { option, path: PathBuf::from(path), why };
    let length = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if length > MAX_FILE {
        return Err(wrong(format!("is larger than {MAX_FILE} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))
}

/// The folder of this program.
fn config_dir(cli: &Cli, environment: &dyn Fn(&str) -> Option<String>) -> Result<Option<PathBuf>, Failure> {
    if cli.config_dir.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
        return Err(usage("--config-dir is empty; name a folder, or leave it out"));
    }
    Ok(store::config_dir(cli.config_dir.as_deref(), environment))
}

/// The folder that `--status` looks into.
///
/// # Errors
/// There is none (64).
pub fn status_folder(cli: &Cli, environment: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    config_dir(cli, environment)?.ok_or_else(no_folder)
}

fn no_folder() -> Failure {
    usage("there is no config dir to keep sign-ins in; give --config-dir, or set MCP_HASP_CONFIG_DIR or HOME")
}

/// `None`: there is no folder to store a sign-in in.
fn sign_in_config(
    cli: &Cli,
    url: &EndpointUrl,
    extra_roots: &[CertificateDer<'static>],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<SignInConfig>, Failure> {
    let options = signin::Options {
        client_id: cli.client_id.as_deref().map(client_id).transpose()?,
        client_secret: cli.client_secret_file.as_deref().map(client_secret).transpose()?,
        client_metadata_url: cli.client_metadata_url.as_deref().map(client_metadata_url).transpose()?,
        scope: cli.scope.as_deref().map(scope).transpose()?,
        callback_port: cli.callback_port,
        issuer: cli.issuer.as_deref().map(issuer).transpose()?,
        resource: cli.resource.as_deref().map(resource).transpose()?,
        opens_browser: !cli.no_browser,
        elsewhere: browser::elsewhere(environment, &|path| Path::new(path).exists()),
        extra_roots: extra_roots.to_vec(),
    };
    let folder = config_dir(cli, environment)?;
    Ok(folder.map(|folder| SignInConfig { folder, options, login: login_command(cli, url) }))
}

fn client_id(text: &str) -> Result<String, Failure> {
    match text.is_empty() || text.chars().any(char::is_control) {
        true => Err(usage("--client-id must not be empty or hold control characters")),
        false => Ok(text.to_owned()),
    }
}

fn client_secret(path: &Path) -> Result<ClientSecret, Failure> {
    let text = read_text("--client-secret-file", path)?;
    let secret = Secret::new(text.trim().to_owned());
    if secret.expose_secret().is_empty() || secret.expose_secret().chars().any(char::is_control) {
        return Err(usage("--client-secret-file does not hold a client secret (one line of text)"));
    }
    Ok(ClientSecret(secret))
}

/// A client id that is a URL: https, with a path, nothing hidden, and compared byte for byte.
fn client_metadata_url(text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok().filter(|url| {
        url.scheme() == "https"
            && url.path() != "/"
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
            && url.as_str() == text
    });
    url.ok_or_else(|| {
        usage("--client-metadata-url must be an https URL with a path, without user name or fragment, in its normal form")
    })
}

fn scope(text: &str) -> Result<Vec<String>, Failure> {
    let scopes = scopes(text);
    match scopes.len() == text.split(' ').filter(|word| !word.is_empty()).count() {
        true => Ok(scopes),
        false => Err(usage("--scope must be scopes of RFC 6749 §3.3, each once, separated by blanks")),
    }
}

fn issuer(text: &str) -> Result<String, Failure> {
    match NamedUrl::parse(text, Reach::Loopback) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(usage(format!("--issuer {why}"))),
    }
}

fn resource(text: &str) -> Result<String, Failure> {
    match Url::parse(text).is_ok_and(|url| url.fragment().is_none()) && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(usage("--resource must be an absolute URI without a fragment (RFC 8707 §2)")),
    }
}

/// What to type to sign in: with everything that matters for it.
fn login_command(cli: &Cli, url: &EndpointUrl) -> String {
    let mut words = vec!["mcp-hasp --url".to_owned(), word(&url.to_string())];
    let mut add = |option: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{option} {}", word(&value))));
    };
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    add("--client-id", cli.client_id.clone());
    add("--client-secret-file", path(&cli.client_secret_file));
    add("--client-metadata-url", cli.client_metadata_url.clone());
    add("--scope", cli.scope.clone());
    add("--callback-port", cli.callback_port.map(|port| port.to_string()));
    add("--issuer", cli.issuer.clone());
    add("--resource", cli.resource.clone());
    add("--ca-file", path(&cli.ca_file));
    add("--config-dir", path(&cli.config_dir));
    words.push("--login".into());
    words.join(" ")
}

/// A word for a shell.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,-~\\".contains(c);
    match text.chars().all(plain) && !text.is_empty() {
        true => text.to_owned(),
        false if cfg!(windows) => format!("\"{}\"", text.replace('"', "")),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn environment(name: &str) -> Option<String> {
        match name {
            "V" => Some("Bearer t".into()),
            "NESTED" => Some("${V}".into()),
            "EMPTY" => Some(String::new()),
            "MCP_HASP_TOKEN" => Some("tok-1".into()),
            _ => None,
        }
    }

    fn config(args: &[&str]) -> Result<Config, Failure> {
        let line = ["mcp-hasp", "--url", "https://a.example/mcp"].iter().chain(args);
        Config::new(Cli::try_parse_from(line).unwrap(), &environment)
    }

    #[test]
    fn each_word_of_a_header_is_a_secret_but_its_scheme() {
        let secrets =
            config(&["--header", "Authorization: Bearer abcd-1234", "--token", "t0k"]).unwrap().secrets();
        assert_eq!(secrets, ["Bearer abcd-1234", "abcd-1234", "t0k"]);
    }

    fn sent(args: &[&str]) -> String {
        config(args).unwrap().headers.get("x-a").unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn header_values_are_trimmed_and_expanded_once() {
        assert_eq!(sent(&["--header", "X-A:${V}"]), "Bearer t");
        assert_eq!(sent(&["--header", "X-A:  t "]), "t");
        assert_eq!(sent(&["--header", "X-A: a${V}b$${V}"]), "aBearer tb${V}");
        assert_eq!(sent(&["--header", "X-A: ${NESTED}"]), "${V}");
    }

    #[test]
    fn a_bad_header_is_a_bad_command_line_and_its_value_is_not_shown() {
        for bad in [
            "X-A: ${NOPE}",
            "X-A: ${EMPTY}",
            "X-A: ${V",
            "X-A hunter2",
            "X A: hunter2",
            "X-A: hunter2\r\nX-B: c",
            "Cookie: hunter2",
            "Mcp-Session-Id: hunter2",
        ] {
            let failure = config(&["--header", bad]).unwrap_err();
            assert!(matches!(failure, Failure::Usage(_)), "{bad}: {failure:?}");
            assert!(!failure.to_string().contains("hunter2"), "{failure}");
        }
        let failure = config(&["--header", "X-Key: ${NOPE}"]).unwrap_err().to_string();
        assert!(failure.contains("NOPE") && failure.contains("x-key"), "{failure}");
    }

    #[test]
    fn the_token_comes_from_the_flag_before_the_environment() {
        let token = |args: &[&str]| config(args).unwrap().token.unwrap().0.expose_secret().to_owned();
        assert_eq!(token(&[]), "tok-1");
        assert_eq!(token(&["--token", "tok-2"]), "tok-2");
        assert!(config(&["--token", "a b"]).is_err());
        assert!(config(&["--token", "a\r\nb"]).is_err());
    }
}
