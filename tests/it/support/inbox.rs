//! What the program wrote on stdout: every line checked, none lost.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::Mutex,
};

use serde_json::{Value, value::RawValue};
use tokio::sync::watch;

use super::{channel, lenient};

/// One answer, as the line it came on.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The exact bytes of the line, without its end.
    pub line: Vec<u8>,
}

impl Answer {
    /// The line parsed.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.line).unwrap()
    }

    /// The exact text of the `id`.
    pub fn id_raw(&self) -> String {
        self.member("id").unwrap_or_else(|| panic!("no id in {}", self.text()))
    }

    /// The exact text of the `result`.
    pub fn result_raw(&self) -> String {
        self.member("result").unwrap_or_else(|| panic!("no result in {}", self.text()))
    }

    /// The `result`, parsed.
    pub fn result(&self) -> Value {
        serde_json::from_str(&self.result_raw()).unwrap()
    }

    /// The `error`, parsed.
    pub fn error(&self) -> Value {
        let error = self.member("error").unwrap_or_else(|| panic!("no error in {}", self.text()));
        serde_json::from_str(&error).unwrap()
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.member("error").is_some()
    }

    /// The line as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }

    /// The exact text of a member of the envelope.
    pub fn member(&self, name: &str) -> Option<String> {
        let members: HashMap<String, Box<RawValue>> = serde_json::from_slice(&self.line).ok()?;
        members.get(name).map(|value| value.get().to_owned())
    }
}

/// Everything that went over stdio, both ways.
#[derive(Default)]
pub struct Inbox {
    state: Mutex<State>,
    /// Changes with every line, and with the end of stdout.
    pub changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    lines: Vec<Line>,
    transcript: String,
    asked: HashSet<String>,
    answered: HashSet<String>,
    cancelled: HashSet<String>,
    broken: Vec<String>,
    initialized: bool,
    ended: bool,
}

struct Line {
    raw: Vec<u8>,
    json: Value,
    taken: bool,
}

impl Inbox {
    /// Notes what the harness is about to send.
    pub fn sent(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap();
        let _ = writeln!(state.transcript, "  -> {}", start_of(line));
        // to read hundreds of megabytes takes longer than a test may
        let json =
            if line.len() < (1 << 25) { lenient::parse(line).unwrap_or_default() } else { Value::Null };
        for message in json.as_array().map_or(std::slice::from_ref(&json), Vec::as_slice) {
            state.initialized |= message["method"] == "notifications/initialized";
            if message["method"] == "notifications/cancelled" {
                state.cancelled.insert(message["params"]["requestId"].to_string());
            } else if message.get("result").or(message.get("error")).is_none() && !message["id"].is_null() {
                let id = message["id"].to_string();
                state.answered.remove(&id);
                state.cancelled.remove(&id);
                state.asked.insert(id);
            }
        }
    }

    /// Takes in a line from stdout.
    pub fn received(&self, raw: Vec<u8>) {
        let mut state = self.state.lock().unwrap();
        let _ = writeln!(state.transcript, "  <- {}", start_of(&raw));
        match lenient::parse(&raw) {
            Some(json) if json.is_object() && json["jsonrpc"] == "2.0" => {
                state.check(&json);
                state.lines.push(Line { raw, json, taken: false });
            }
            _ => {
                let text = start_of(&raw);
                state.broken.push(format!("not one JSON-RPC object in UTF-8: {text}"));
            }
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// From now on an answer with that id is expected, although nobody could read the request.
    pub fn expect(&self, id: &Value) {
        self.state.lock().unwrap().asked.insert(id.to_string());
    }

    /// Stdout has ended.
    pub fn end(&self) {
        self.state.lock().unwrap().ended = true;
        self.changed.send_replace(());
    }

    /// Whether stdout has ended.
    pub fn ended(&self) -> bool {
        self.state.lock().unwrap().ended
    }

    /// Takes the first line that was not taken yet and fits.
    pub fn take(&self, fits: impl Fn(&Value) -> bool) -> Option<(Vec<u8>, Value)> {
        let mut state = self.state.lock().unwrap();
        let line = state.lines.iter_mut().find(|line| !line.taken && fits(&line.json))?;
        line.taken = true;
        Some((line.raw.clone(), line.json.clone()))
    }

    /// All lines so far, taken or not.
    pub fn lines(&self) -> Vec<Value> {
        self.state.lock().unwrap().lines.iter().map(|line| line.json.clone()).collect()
    }

    /// What is wrong with what was received; empty when nothing is.
    pub fn broken(&self) -> Vec<String> {
        self.state.lock().unwrap().broken.clone()
    }

    /// Both directions, for a person to read.
    pub fn transcript(&self) -> String {
        self.state.lock().unwrap().transcript.clone()
    }
}

impl State {
    fn check(&mut self, json: &Value) {
        if json["method"] == channel::CHANNEL {
            self.broken.extend(channel::faults(json, self.initialized));
        }
        if json["method"].is_string() {
            return;
        }
        let outcomes = [json.get("result"), json.get("error")].iter().flatten().count();
        if outcomes != 1 {
            self.broken.push(format!("neither message nor answer: {json}"));
        }
        if json["id"].is_null() {
            if json.get("error").is_none() {
                self.broken.push(format!("a result without an id: {json}"));
            }
            return;
        }
        let id = json["id"].to_string();
        if self.cancelled.contains(&id) {
            self.broken.push(format!("an answer to a cancelled request: {json}"));
        }
        if !self.asked.contains(&id) {
            self.broken.push(format!("an answer that nobody asked for: {json}"));
        }
        if !self.answered.insert(id) {
            self.broken.push(format!("a second answer: {json}"));
        }
    }
}

/// As much of a line as a person wants to see.
fn start_of(line: &[u8]) -> String {
    let shown = line.get(..4000).unwrap_or(line);
    let more = if shown.len() < line.len() { format!("… ({} bytes)", line.len()) } else { String::new() };
    String::from_utf8_lossy(shown).into_owned() + &more
}
