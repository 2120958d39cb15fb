//! A harness in miniature: it starts mcp-hasp as a child and speaks MCP with it, a line for each message.
//!
//! It takes the messages one by one, in the order in which they come, and knows every kind that may come. Any
//! other line is an error: nothing but MCP belongs on the stdout of mcp-hasp.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::Result;

/// Which of the two protocol eras the harness speaks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Era {
    /// `initialize` first; the server sends requests of its own.
    Legacy,
    /// No opening; every request says for itself what it needs.
    Modern,
}

impl Era {
    /// The revision by its date.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// The harness and its child. Dropping it ends the child.
pub(crate) struct Harness {
    pub(crate) era: Era,
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    /// What the child says on stderr, line by line.
    heard: watch::Receiver<Vec<String>>,
    hearing: JoinHandle<()>,
    next_id: i64,
}

/// How the child ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// All that it had to say on stderr, line by line.
    pub(crate) words: Vec<String>,
}

/// A message from mcp-hasp.
pub(crate) enum Message {
    /// The result of a request, and the line in which it came.
    Result { id: i64, result: Value, line: String },
    /// The error that answers a request.
    Error { id: i64, error: Value },
    /// A call goes on.
    Progress { token: Value, progress: Value, total: Value, message: String },
    /// A question to the user; in the legacy era it is a request of the server.
    Question { id: Value, params: Value },
}

impl Harness {
    /// Starts the program as the entry in a harness's configuration would: a command, its arguments, pipes.
    pub(crate) fn start<A: AsRef<OsStr>>(
        era: Era,
        program: &Path,
        url: &str,
        config_dir: &Path,
        further: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["--url", url])
            .args(further)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // what is set up for real endpoints has no say here, and nothing is left behind
        for (name, _) in std::env::vars_os() {
            if is_settings(&name) {
                command.env_remove(name);
            }
        }
        command.env("MCP_HASP_CONFIG_DIR", config_dir);

        let mut child = command.spawn().map_err(|error| format!("mcp-hasp could not be started: {error}"))?;
        let stdin = child.stdin.take().ok_or("mcp-hasp has no stdin")?;
        let stdout = child.stdout.take().ok_or("mcp-hasp has no stdout")?;
        let stderr = child.stderr.take().ok_or("mcp-hasp has no stderr")?;

        // a pipe that nobody empties would stop the child one day
        let (words, heard) = watch::channel(Vec::new());
        let hearing = tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                words.send_modify(|words| words.push(line));
            }
        });

        let stdout = BufReader::new(stdout).lines();
        // 0 is an id like any other, and the first one that some harnesses use
        Ok(Self { era, child, stdin, stdout, heard, hearing, next_id: 0 })
    }

    /// Sends a request and returns its id. In the modern era it says what it needs to know itself.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> Result<i64> {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.era.version());
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = client_info();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = client_capabilities();
        }
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        Ok(id)
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Answers a request of the server.
    pub(crate) async fn reply(&mut self, id: &Value, result: Value) -> Result<()> {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    async fn send(&mut self, message: Value) -> Result<()> {
        let line = format!("{message}\n");
        let written = timeout(PATIENCE, self.stdin.write_all(line.as_bytes())).await;
        written
            .map_err(|_| "mcp-hasp does not read its stdin")?
            .map_err(|_| self.gone("closed its stdin"))?;
        Ok(())
    }

    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Result<Message> {
        let line = match timeout(PATIENCE, self.stdout.next_line()).await {
            Ok(Ok(Some(line))) => line,
            Ok(_) => return Err(self.gone("closed its stdout").into()),
            Err(_) => return Err(self.gone("has said nothing for five seconds").into()),
        };
        understood(line)
    }

    /// The first line on stderr that contains this, as soon as there is one. stderr is the user's to read, not the
    /// harness's; a person would see it in a log or a terminal.
    pub(crate) async fn told(&mut self, part: &str) -> Result<String> {
        let line = |lines: &Vec<String>| lines.iter().find(|line| line.contains(part)).cloned();
        let found = match timeout(PATIENCE, self.heard.wait_for(|lines| line(lines).is_some())).await {
            Ok(Ok(lines)) => line(&lines),
            _ => None,
        };
        found.ok_or_else(|| self.gone(&format!("said nothing of {part:?}")).into())
    }

    /// Leaves as a harness leaves: by closing stdin. What is still said on stdout then is an error.
    pub(crate) async fn leave(self) -> Result<Ended> {
        let Self { child, stdin, stdout, heard, hearing, .. } = self;
        drop(stdin);
        ended(child, stdout, heard, hearing).await
    }

    /// Waits until the child ends by itself, which has to happen without a word on stdout.
    pub(crate) async fn outlive(self) -> Result<Ended> {
        let Self { child, stdin, stdout, heard, hearing, .. } = self;
        let ended = ended(child, stdout, heard, hearing).await;
        drop(stdin);
        ended
    }

    /// What became of the child, with the last thing that it had to say.
    fn gone(&mut self, what: &str) -> String {
        let status = match self.child.try_wait() {
            Ok(Some(status)) => format!(" ({status})"),
            _ => String::new(),
        };
        let heard = self.heard.borrow();
        let last_word = match heard.last() {
            None => String::new(),
            Some(word) => format!("; its last words on stderr: {}", word.trim()),
        };
        format!("mcp-hasp {what}{status}{last_word}")
    }
}

async fn ended(
    mut child: Child,
    mut stdout: Lines<BufReader<ChildStdout>>,
    heard: watch::Receiver<Vec<String>>,
    hearing: JoinHandle<()>,
) -> Result<Ended> {
    let end = async {
        if let Some(line) = stdout.next_line().await? {
            return Err(format!("mcp-hasp should have ended, but said {line}").into());
        }
        let status = child.wait().await?;
        hearing.await?;
        let words = heard.borrow().clone();
        Ok(Ended { status, words })
    };
    timeout(PATIENCE, end)
        .await
        .map_err(|_| "mcp-hasp should have ended, and is still there after five seconds")?
}

/// How this harness introduces itself.
pub(crate) fn client_info() -> Value {
    json!({"name": "demo-harness", "version": "1.0.0"})
}

/// It can show its user a form.
pub(crate) fn client_capabilities() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn understood(line: String) -> Result<Message> {
    let strange = |what: &str| format!("mcp-hasp said {what}: {line}");
    let message: Value = serde_json::from_str(&line).map_err(|_| strange("something that is not JSON"))?;
    if message["jsonrpc"] != "2.0" {
        return Err(strange("something that is not JSON-RPC 2.0").into());
    }
    let params = &message["params"];
    match message["method"].as_str() {
        Some("notifications/progress") if message.get("id").is_none() => Ok(Message::Progress {
            token: params["progressToken"].clone(),
            progress: params["progress"].clone(),
            total: params["total"].clone(),
            message: params["message"].as_str().unwrap_or_default().to_owned(),
        }),
        Some("elicitation/create") if message.get("id").is_some() => {
            Ok(Message::Question { id: message["id"].clone(), params: params.clone() })
        }
        Some(_) => Err(strange("something that this harness did not ask for").into()),
        None => {
            let id = message["id"].as_i64().ok_or_else(|| strange("an answer to nobody's request"))?;
            match (message.get("result"), message.get("error")) {
                (Some(result), None) => Ok(Message::Result { id, result: result.clone(), line }),
                (None, Some(error)) => Ok(Message::Error { id, error: error.clone() }),
                _ => Err(strange("neither a result nor an error").into()),
            }
        }
    }
}

/// Settings of mcp-hasp, and a web proxy: nothing here leaves this machine.
fn is_settings(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    name.starts_with("MCP_HASP_")
        || ["PLAYERTHREE_TOKEN", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].contains(&name.as_str())
}

/// How long the harness waits for anything: a demonstration that hangs shows nothing.
const PATIENCE: Duration = Duration::from_secs(5);
