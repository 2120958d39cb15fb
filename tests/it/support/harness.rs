//! Drives the real binary over its stdio, as the program that starts it would.

use std::{
    collections::BTreeMap,
    process::Stdio,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, value::RawValue};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, Command},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

use super::{
    Era, LIMIT, MODERN,
    inbox::{Answer, Inbox},
    rules::{META_CAPABILITIES, META_VERSION},
};

/// How the program is to be started.
#[must_use]
pub struct Launch {
    command: Command,
    home: TempDir,
    stderr_full: bool,
    sockets: bool,
}

impl Launch {
    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// One more environment variable. Nothing is inherited; HOME is a directory of this test alone.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The folder of sign-ins and locks.
    pub fn config_dir(self, path: &std::path::Path) -> Self {
        self.arg("--config-dir").arg(path)
    }

    /// A program of that name on the PATH, which is otherwise empty: the lines of a shell script.
    #[cfg(unix)]
    pub fn program(self, name: &str, script: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let bin = self.home.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        self
    }

    /// Has another program start this one: its name with its path, and its arguments, before ours.
    pub fn by(mut self, starter: &str, args: &[&str]) -> Self {
        let mut command = Command::new(starter);
        let ours = self.command.as_std();
        command.args(args).arg(ours.get_program()).args(ours.get_args()).env_clear();
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        piped(&mut command);
        self.command = command;
        self
    }

    /// No file can grow beyond that many blocks of 512 bytes, as on a disk that is full.
    #[cfg(unix)]
    pub fn file_limit(self, blocks: usize) -> Self {
        let limited = format!("trap '' XFSZ; ulimit -Sf {blocks}; exec \"$0\" \"$@\"");
        self.by("/bin/sh", &["-c", &limited])
    }

    /// Runs the program to its end, with an empty stdin.
    pub async fn run(self) -> Run {
        self.spawn().finish().await
    }

    /// Starts the program for one errand, with an empty stdin; its stdout need not be MCP.
    pub fn spawn(mut self) -> OneShot {
        let mut child = self.command.stdin(Stdio::null()).spawn().unwrap();
        let said = Said::default();
        let listening = tokio::spawn(said.clone().listen(child.stderr.take().unwrap()));
        let mut stdout = child.stdout.take().unwrap();
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            let _ = stdout.read_to_end(&mut all).await;
            String::from_utf8(all).unwrap()
        });
        OneShot { child, said, listening, reading, links: 0, _home: self.home }
    }

    /// Stderr is a pipe that is full from the start and that nobody reads.
    pub fn stderr_full(mut self) -> Self {
        self.stderr_full = true;
        self
    }

    /// Its stdin and stdout are sockets, as Node makes them, and not pipes.
    #[cfg(unix)]
    pub fn sockets(mut self) -> Self {
        self.sockets = true;
        self
    }

    /// Starts the program.
    pub fn start(mut self) -> Harness {
        let full = self.stderr_full.then(|| {
            let (unread, mut filler) = std::io::pipe().unwrap();
            self.command.stderr(filler.try_clone().unwrap());
            std::thread::spawn(
                move || while std::io::Write::write_all(&mut filler, &[b'x'; 4096]).is_ok() {},
            );
            unread
        });
        let ends = self.sockets.then(|| sockets(&mut self.command));
        let mut child = self.command.spawn().unwrap();
        // The program's own ends are closed with the command.
        drop(self.command);
        let (stdin, stdout) = ends.unwrap_or_else(|| {
            (Box::new(child.stdin.take().unwrap()), Box::new(child.stdout.take().unwrap()))
        });
        let inbox = Arc::new(Inbox::default());
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (flowing, flows) = watch::channel(true);
        let reading = tokio::spawn(read_lines(stdout, inbox.clone(), flows));
        let listening = match child.stderr.take() {
            Some(source) => tokio::spawn(read_stderr(source, stderr.clone(), inbox.clone())),
            None => tokio::spawn(async {}),
        };
        Harness {
            stdin: Some(stdin),
            child,
            inbox,
            stderr,
            reading,
            listening,
            modern_capabilities: None,
            next_id: 0,
            links: 0,
            home: self.home,
            flowing,
            _unread: full,
        }
    }
}

type Input = Box<dyn AsyncWrite + Send + Unpin>;
type Output = Box<dyn AsyncRead + Send + Unpin>;

/// Our ends of two sockets that the program has for stdin and stdout.
#[cfg(unix)]
fn sockets(command: &mut Command) -> (Input, Output) {
    use std::os::{fd::OwnedFd, unix::net::UnixStream};

    let pair = || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (tokio::net::UnixStream::from_std(ours).unwrap(), OwnedFd::from(theirs))
    };
    let ((input, stdin), (output, stdout)) = (pair(), pair());
    command.stdin(stdin).stdout(stdout);
    (Box::new(input), Box::new(output))
}

#[cfg(not(unix))]
fn sockets(_: &mut Command) -> (Input, Output) {
    unreachable!("there is no way to ask for it")
}

fn piped(command: &mut Command) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
}

/// What one run of the program left.
#[derive(Clone, Debug)]
pub struct Run {
    /// The exit code; -1 for a signal.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

/// The program on one errand (`--login`, `--status`, …). It is killed when this is dropped.
pub struct OneShot {
    child: Child,
    said: Said,
    listening: JoinHandle<()>,
    reading: JoinHandle<String>,
    links: usize,
    _home: TempDir,
}

impl OneShot {
    /// Waits for the next link to sign in with that stderr says.
    pub async fn sign_in_link(&mut self) -> String {
        self.links += 1;
        let nth = self.links - 1;
        let mut changed = self.said.changed.subscribe();
        let coming = async {
            loop {
                if let Some(link) = links_in(&self.said.text()).into_iter().nth(nth) {
                    return link;
                }
                let _ = changed.changed().await;
            }
        };
        let link = timeout(LIMIT, coming).await;
        link.unwrap_or_else(|_| panic!("no link on stderr:\n{}", self.said.text()))
    }

    /// Stderr so far.
    pub fn stderr_text(&self) -> String {
        self.said.text()
    }

    /// Waits for the end.
    pub async fn finish(mut self) -> Run {
        let Ok(status) = timeout(LIMIT, self.child.wait()).await else {
            panic!("the program does not end; stderr:\n{}", self.said.text());
        };
        let _ = timeout(LIMIT, &mut self.listening).await;
        let stdout = timeout(LIMIT, &mut self.reading).await.expect("stdout does not end").unwrap();
        Run { code: status.unwrap().code().unwrap_or(-1), stdout, stderr: self.said.text() }
    }
}

/// What stderr says.
#[derive(Clone, Default)]
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    changed: watch::Sender<()>,
}

impl Said {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    async fn listen(self, mut stderr: ChildStderr) {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            self.bytes.lock().unwrap().extend_from_slice(&buffer[..read]);
            self.changed.send_replace(());
        }
    }
}

/// The links to sign in with in a text, each once; the last line counts only when it is whole.
pub fn links_in(text: &str) -> Vec<String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let words = whole.split(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>'));
    let mut links: Vec<String> = Vec::new();
    for word in words.filter(|word| word.starts_with("http") && word.contains("code_challenge=")) {
        if !links.iter().any(|link| link == word) {
            links.push(word.to_owned());
        }
    }
    links
}

/// The running program. It is killed when this is dropped.
pub struct Harness {
    child: Child,
    stdin: Option<Input>,
    inbox: Arc<Inbox>,
    stderr: Arc<Mutex<Vec<u8>>>,
    reading: JoinHandle<()>,
    listening: JoinHandle<()>,
    modern_capabilities: Option<String>,
    next_id: u64,
    links: usize,
    home: TempDir,
    flowing: watch::Sender<bool>,
    _unread: Option<std::io::PipeReader>,
}

impl Harness {
    /// The program for that URL, not started yet.
    pub fn launch(url: &str) -> Launch {
        Self::launch_bare().args(&["--url", url])
    }

    /// The program without a URL, not started yet.
    pub fn launch_bare() -> Launch {
        let home = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-hasp"));
        // An empty PATH: no test opens a tab in the browser of whoever runs it.
        command.env_clear().env("HOME", home.path()).env("PATH", home.path().join("bin"));
        piped(&mut command);
        Launch { command, home, stderr_full: false, sockets: false }
    }

    /// Starts the program for that URL.
    pub fn start(url: &str, args: &[&str]) -> Self {
        Self::launch(url).args(args).start()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the program has ended")
    }

    /// The directory that the program sees as HOME.
    pub fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    /// Opens in that era, with those capabilities of the client.
    pub async fn open(&mut self, era: Era, capabilities_raw: &str) -> Answer {
        match era {
            Era::Modern => self.discover(capabilities_raw).await,
            Era::Legacy => self.initialize(super::LEGACY, capabilities_raw).await,
        }
    }

    /// The legacy opening: `initialize`, its answer, `notifications/initialized`.
    pub async fn initialize(&mut self, version: &str, capabilities_raw: &str) -> Answer {
        self.modern_capabilities = None;
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{capabilities_raw},"clientInfo":{CLIENT}}}"#
        );
        let id = self.request("initialize", &params).await;
        let answer = self.answer(id).await;
        if !answer.is_error() {
            self.notify("notifications/initialized", "{}").await;
        }
        answer
    }

    /// The modern opening: `server/discover` and its answer.
    pub async fn discover(&mut self, capabilities_raw: &str) -> Answer {
        self.speak_modern(capabilities_raw);
        let id = self.request("server/discover", "{}").await;
        self.answer(id).await
    }

    /// From now on requests carry the modern envelope; nothing is sent for it.
    pub fn speak_modern(&mut self, capabilities_raw: &str) {
        self.modern_capabilities = Some(capabilities_raw.to_owned());
    }

    /// Sends bytes and a line end.
    pub async fn send_line(&mut self, line: &[u8]) {
        self.inbox.sent(line);
        self.write(&[line, b"\n"].concat()).await;
    }

    /// Sends bytes as they are, without a line end.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.write(bytes).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is closed");
        let sending = async {
            stdin.write_all(bytes).await?;
            stdin.flush().await
        };
        match timeout(LIMIT, sending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(&format!("stdin: {error}")),
            Err(_) => self.fail("the program does not read its stdin"),
        }
    }

    /// Sends several lines with one write.
    pub async fn send_at_once(&mut self, lines: &[String]) {
        let (last, before) = lines.split_last().unwrap();
        let mut bytes = Vec::new();
        for line in before {
            self.inbox.sent(line.as_bytes());
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        self.inbox.sent(last.as_bytes());
        bytes.extend_from_slice(last.as_bytes());
        bytes.push(b'\n');
        self.write(&bytes).await;
    }

    /// Sends a line that the test cannot read as JSON, but whose id the program may read.
    pub async fn send_unreadable(&mut self, line: &[u8], id_raw: &str) {
        self.inbox.expect(&serde_json::from_str(id_raw).unwrap());
        self.send_line(line).await;
    }

    /// Sends a request; in the modern era its `_meta` is completed. The id is the one to wait for.
    pub async fn request(&mut self, method: &str, params_raw: &str) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let params = self.enveloped(params_raw);
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.send_line(line.as_bytes()).await;
        id
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params_raw: &str) {
        let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params_raw}}}"#);
        self.send_line(line.as_bytes()).await;
    }

    /// Cancels a request; an answer to it fails the test from now on.
    pub async fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)).await;
    }

    /// Calls a tool and waits for the answer.
    pub async fn call(&mut self, tool: &str, arguments_raw: &str) -> Answer {
        let id = self.start_call(tool, arguments_raw).await;
        self.answer(id).await
    }

    /// Calls a tool.
    pub async fn start_call(&mut self, tool: &str, arguments_raw: &str) -> u64 {
        self.request("tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments_raw}}}"#)).await
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(&mut self, method: &str, params_raw: &str) -> Answer {
        let id = self.request(method, params_raw).await;
        self.answer(id).await
    }

    /// Waits for the answer to that request.
    pub async fn answer(&mut self, id: u64) -> Answer {
        self.answer_to(&id.to_string()).await
    }

    /// Waits for the answer with that id, given as its raw text; `null` waits for an error without an id.
    pub async fn answer_to(&mut self, id_raw: &str) -> Answer {
        self.answer_within(id_raw, LIMIT).await
    }

    /// The same with a limit of its own.
    pub async fn answer_within(&mut self, id_raw: &str, limit: Duration) -> Answer {
        let id: Value = serde_json::from_str(id_raw).unwrap();
        let fits = |line: &Value| line.get("method").is_none() && line["id"] == id;
        let (line, _) = self.take_within(&format!("the answer to {id_raw}"), fits, limit).await;
        Answer { line }
    }

    /// Waits for the answer with that id, or for an error without one.
    pub async fn answer_or_null(&mut self, id_raw: &str) -> Answer {
        let id: Value = serde_json::from_str(id_raw).unwrap();
        let fits = |line: &Value| line.get("method").is_none() && (line["id"] == id || line["id"].is_null());
        let (line, _) = self.take(&format!("the answer to {id_raw}, or to null"), fits).await;
        Answer { line }
    }

    /// Waits for the next line that is no answer and has that method.
    pub async fn next_of(&mut self, method: &str) -> Answer {
        Answer { line: self.take(method, |line| line["method"] == method).await.0 }
    }

    /// Waits for the next notification of that method; lines of other kinds stay where they are.
    pub async fn next_notification(&mut self, method: &str) -> Value {
        self.take(method, |line| line["method"] == method && line.get("id").is_none()).await.1
    }

    /// Waits for the next request of the program to the harness.
    pub async fn next_request(&mut self) -> Value {
        self.take("a request", |line| line["method"].is_string() && line.get("id").is_some()).await.1
    }

    /// All notifications so far, in order.
    pub fn notifications(&self) -> Vec<Value> {
        let is_notification = |line: &Value| line["method"].is_string() && line.get("id").is_none();
        self.lines().into_iter().filter(is_notification).collect()
    }

    /// All lines so far, in order.
    pub fn lines(&self) -> Vec<Value> {
        self.inbox.lines()
    }

    /// Answers a request of the program.
    pub async fn reply(&mut self, id_raw: &str, result_raw: &str) {
        let line = super::reply::result_text(id_raw, result_raw);
        self.send_line(line.as_bytes()).await;
    }

    /// Answers a request of the program with an error.
    pub async fn reply_error(&mut self, id_raw: &str, error_raw: &str) {
        let line = super::reply::error_text(id_raw, error_raw);
        self.send_line(line.as_bytes()).await;
    }

    /// Closes the program's stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes the reading end of the program's stdout.
    pub async fn close_stdout(&mut self) {
        self.reading.abort();
        let _ = (&mut self.reading).await;
    }

    /// Stops reading the program's stdout, or goes on with it.
    pub fn read_stdout(&mut self, on: bool) {
        self.flowing.send_replace(on);
    }

    /// Sends a signal, by the name that `kill` knows.
    pub async fn signal(&mut self, name: &str) {
        let pid = self.child.id().expect("the program has ended").to_string();
        let status = Command::new("kill").args([format!("-{name}"), pid]).status().await.unwrap();
        assert!(status.success(), "kill -{name} failed");
    }

    /// Waits for the end; the exit code (-1 for a signal) and how long it took from this call on.
    pub async fn wait_exit(&mut self) -> (i32, Duration) {
        let from = Instant::now();
        let Ok(status) = timeout(LIMIT, self.child.wait()).await else {
            self.fail("the program does not end");
        };
        let took = from.elapsed();
        if !self.reading.is_finished() {
            let _ = timeout(LIMIT, &mut self.reading).await;
        }
        if !self.listening.is_finished() {
            let _ = timeout(LIMIT, &mut self.listening).await;
        }
        self.check();
        (status.unwrap().code().unwrap_or(-1), took)
    }

    /// The same, while nobody reads what is left in stdout.
    pub async fn wait_exit_unread(&mut self) -> (i32, Duration) {
        let from = Instant::now();
        let Ok(status) = timeout(LIMIT, self.child.wait()).await else {
            self.fail("the program does not end");
        };
        self.reading.abort();
        (status.unwrap().code().unwrap_or(-1), from.elapsed())
    }

    /// Stderr so far; whole after `wait_exit`.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    /// All links to sign in with that stderr said so far, each once.
    pub fn sign_in_links(&self) -> Vec<String> {
        links_in(&self.stderr_text())
    }

    /// Waits for the next link to sign in with that stderr says.
    pub async fn sign_in_link(&mut self) -> String {
        let mut changed = self.inbox.changed.subscribe();
        let coming = async {
            loop {
                if let Some(link) = self.sign_in_links().into_iter().nth(self.links) {
                    return link;
                }
                let _ = changed.changed().await;
            }
        };
        let Ok(link) = timeout(LIMIT, coming).await else { self.fail("no link to sign in with on stderr") };
        self.links += 1;
        link
    }

    /// Waits until stderr holds that text.
    pub async fn wait_stderr(&mut self, text: &str) {
        let mut changed = self.inbox.changed.subscribe();
        let arrived = async {
            while !self.stderr_text().contains(text) {
                let _ = changed.changed().await;
            }
        };
        let in_time = timeout(LIMIT, arrived).await.is_ok();
        if !in_time {
            self.fail(&format!("no {text:?} on stderr"));
        }
    }

    async fn take(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> (Vec<u8>, Value) {
        self.take_within(what, fits, LIMIT).await
    }

    async fn take_within(
        &mut self,
        what: &str,
        fits: impl Fn(&Value) -> bool,
        limit: Duration,
    ) -> (Vec<u8>, Value) {
        let mut changed = self.inbox.changed.subscribe();
        let taking = async {
            loop {
                let ended = self.inbox.ended();
                if let Some(found) = self.inbox.take(&fits) {
                    return Some(found);
                }
                if ended || !self.inbox.broken().is_empty() {
                    return None;
                }
                let _ = changed.changed().await;
            }
        };
        let found = timeout(limit, taking).await;
        self.check();
        match found {
            Ok(Some(found)) => found,
            Ok(None) => self.fail(&format!("stdout ended before {what}")),
            Err(_) => self.fail(&format!("waited in vain for {what}")),
        }
    }

    /// Params with the modern `_meta`, where this harness speaks modern. What the caller gave goes first.
    fn enveloped(&self, params_raw: &str) -> String {
        let Some(capabilities) = &self.modern_capabilities else { return params_raw.to_owned() };
        let mut params: BTreeMap<String, Box<RawValue>> = serde_json::from_str(params_raw).unwrap();
        let mut meta: BTreeMap<String, Box<RawValue>> =
            params.get("_meta").map_or_else(BTreeMap::new, |meta| serde_json::from_str(meta.get()).unwrap());
        let raw = |text: String| RawValue::from_string(text).unwrap();
        let ours = [
            (META_VERSION, format!("\"{MODERN}\"")),
            (META_CAPABILITIES, capabilities.clone()),
            ("io.modelcontextprotocol/clientInfo", CLIENT.to_owned()),
        ];
        for (key, value) in ours {
            meta.entry(key.to_owned()).or_insert_with(|| raw(value));
        }
        params.insert("_meta".to_owned(), raw(serde_json::to_string(&meta).unwrap()));
        serde_json::to_string(&params).unwrap()
    }

    fn check(&self) {
        let broken = self.inbox.broken();
        if !broken.is_empty() {
            self.fail(&format!("stdout is wrong: {}", broken.join("; ")));
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\nstdio:\n{}\nstderr:\n{}", self.inbox.transcript(), self.stderr_text());
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

const CLIENT: &str = r#"{"name":"test-harness","version":"1.0.0"}"#;

async fn read_lines(stdout: Output, inbox: Arc<Inbox>, mut flows: watch::Receiver<bool>) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    while flows.wait_for(|on| *on).await.is_ok()
        && stdout.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0)
    {
        let mut whole = std::mem::take(&mut line);
        if whole.last() == Some(&b'\n') {
            whole.pop();
        } else {
            whole.extend_from_slice(b" (the line has no end)");
        }
        inbox.received(whole);
    }
    inbox.end();
}

async fn read_stderr(mut stderr: ChildStderr, text: Arc<Mutex<Vec<u8>>>, inbox: Arc<Inbox>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        text.lock().unwrap().extend_from_slice(&buffer[..read]);
        inbox.changed.send_replace(());
    }
}
