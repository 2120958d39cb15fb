//! What is shown: one visit of a harness to the endpoint, through mcp-hasp, told once for each era.
//!
//! Every step looks at what came back, and the first that is not as it should be ends the demonstration. A
//! further promise of mcp-hasp is a further step in [`visit`], or a visit of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::Result;
use crate::endpoint::{Endpoint, STEP, Seen};
use crate::harness::{self, Era, Harness, Message};
use crate::lighthouse;
use crate::page::{Page, Way};

/// One visit, from the start of mcp-hasp to its end.
pub(crate) async fn visit(
    page: &mut Page,
    endpoint: &mut Endpoint,
    era: Era,
    program: &Path,
    config_dir: &Path,
) -> Result<()> {
    let started = Instant::now();
    let harness = Harness::start(era, program, &endpoint.url, config_dir)?;
    let mut visit = Visit { page, endpoint, harness };
    visit.open(started).await.map_err(at("opening"))?;
    visit.list_tools().await.map_err(at("tools/list"))?;
    visit.look().await.map_err(at("look"))?;
    visit.read().await.map_err(at("reading"))?;
    visit.watch_and_signal().await.map_err(at("a long and a short call"))?;
    visit.ask_keeper().await.map_err(at("a question to the user"))?;
    visit.cancel().await.map_err(at("cancelling"))?;
    visit.leave().await.map_err(at("leaving"))
}

struct Visit<'a> {
    page: &'a mut Page,
    endpoint: &'a mut Endpoint,
    harness: Harness,
}

/// A result, and the line in which it came.
struct Answer {
    result: Value,
    line: String,
}

impl Visit<'_> {
    /// Both eras start differently and get the same: the endpoint's instructions, read beforehand.
    async fn open(&mut self, started: Instant) -> Result<()> {
        let version = self.harness.era.version();
        let (answer, agreed) = match self.harness.era {
            Era::Legacy => {
                let params = json!({
                    "protocolVersion": version,
                    "capabilities": harness::client_capabilities(),
                    "clientInfo": harness::client_info(),
                });
                self.page.said(Way::Asks, format_args!("initialize {version}"));
                let answer = self.ask("initialize", params).await?;
                self.harness.notify("notifications/initialized", json!({})).await?;
                let agreed = answer.result["protocolVersion"] == version;
                (answer, agreed)
            }
            Era::Modern => {
                self.page.said(Way::Asks, format_args!("server/discover {version}"));
                let answer = self.ask("server/discover", json!({})).await?;
                let versions = answer.result["supportedVersions"].as_array();
                let agreed = versions.is_some_and(|versions| versions.iter().any(|spoken| spoken == version));
                (answer, agreed)
            }
        };
        let ready = started.elapsed();
        want(agreed, || format!("{version} is not what mcp-hasp agreed to: {}", answer.line))?;
        want(answer.result["instructions"] == lighthouse::INSTRUCTIONS, || {
            format!("these are not the endpoint's instructions: {}", answer.result["instructions"])
        })?;
        self.page.said(Way::Tells, format_args!("{version}, and the endpoint's instructions"));
        self.page.proven(format_args!(
            "speaks {version} to this harness, 2026-07-28 to the endpoint; ready {} ms after its start",
            ready.as_millis()
        ));
        Ok(())
    }

    async fn list_tools(&mut self) -> Result<()> {
        self.page.said(Way::Asks, "tools/list");
        let answer = self.ask("tools/list", json!({})).await?;
        let tools = lighthouse::tools();
        want(answer.result["tools"].as_array() == Some(&tools), || {
            format!("these are not the endpoint's tools: {}", answer.line)
        })?;
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        self.page.said(Way::Tells, names.join(", "));
        self.page.proven("both pages of the tool list, each tool just as the endpoint describes it");
        Ok(())
    }

    async fn look(&mut self) -> Result<()> {
        self.page.said(Way::Asks, "tools/call look");
        let answer = self.ask("tools/call", json!({"name": "look", "arguments": {}})).await?;
        want(answer.line.contains(&format!(r#""structuredContent":{}"#, lighthouse::VIEW)), || {
            format!("the view was altered on its way: {}", answer.line)
        })?;
        self.page.said(Way::Tells, lighthouse::VIEW);
        self.page.proven("the payload arrived as it was sent: 12.50 stayed 12.50");
        Ok(())
    }

    async fn read(&mut self) -> Result<()> {
        self.page.said(Way::Asks, format_args!("resources/read {}", lighthouse::LOG_URI));
        let answer = self.ask("resources/read", json!({"uri": lighthouse::LOG_URI})).await?;
        want(answer.result["contents"] == lighthouse::log(), || {
            format!("this is not the log: {}", answer.line)
        })?;
        self.page.said(Way::Tells, &answer.result["contents"][0]["text"]);

        self.page.said(Way::Asks, format_args!("prompts/get {}", lighthouse::REPORT));
        let answer = self.ask("prompts/get", json!({"name": lighthouse::REPORT})).await?;
        want(answer.result["messages"] == lighthouse::report(), || {
            format!("this is not the prompt: {}", answer.line)
        })?;
        self.page.said(Way::Tells, &answer.result["messages"][0]["content"]["text"]);
        self.page.proven("resources and prompts pass like tools");
        Ok(())
    }

    /// The long call reports as it goes on, and a short one that is sent meanwhile does not wait for it.
    async fn watch_and_signal(&mut self) -> Result<()> {
        let token = json!("watch-1");
        self.page.said(Way::Asks, "tools/call watch (takes two seconds)");
        let watch = self
            .harness
            .request(
                "tools/call",
                json!({"name": "watch", "arguments": {}, "_meta": {"progressToken": token}}),
            )
            .await?;

        let mut seen = 0.0;
        let mut signal = None;
        let mut signalled = None;
        loop {
            match self.harness.next().await? {
                Message::Progress { token: theirs, progress, total, message } => {
                    want(theirs == token, || format!("progress for {theirs}, which nobody asked for"))?;
                    want(progress > seen, || format!("progress went from {seen} to {progress}"))?;
                    self.overhear()?;
                    self.page.said(Way::Tells, format_args!("  {progress}/{total} {message}"));
                    seen = progress;
                    if progress == 2.0 {
                        let arguments = json!({"ship": "Zoë", "message": "keep to the east"});
                        self.page.said(Way::Asks, "tools/call signal (a short call, meanwhile)");
                        let params = json!({"name": "signal", "arguments": arguments});
                        signal = Some((self.harness.request("tools/call", params).await?, Instant::now()));
                    }
                }
                Message::Result { id, result, .. } if signal.is_some_and(|(signal, _)| signal == id) => {
                    signalled = signal.map(|(_, since)| since.elapsed());
                    self.overhear()?;
                    self.page.said(Way::Tells, text_of(&result));
                    want(text_of(&result) == "Zoë was sent: keep to the east", || {
                        format!("this does not answer the signal: {result}")
                    })?;
                }
                Message::Result { id, result, .. } if id == watch => {
                    self.page.said(Way::Tells, text_of(&result));
                    want(text_of(&result).starts_with("The watch is over"), || {
                        format!("this does not answer the watch: {result}")
                    })?;
                    break;
                }
                other => return Err(unexpected(&other).into()),
            }
        }
        want(seen == 6.0, || format!("only {seen} of 6 steps of the watch were reported"))?;
        self.page.proven("six reports, one by one, while the call went on");
        let signalled = signalled.ok_or("the short call was not answered before the long one")?;
        want(signalled < STEP, || format!("the short call took {} ms", signalled.as_millis()))?;
        self.page.proven(format_args!(
            "the short call did not wait for the long one: {:.1} ms",
            signalled.as_secs_f64() * 1000.0
        ));
        Ok(())
    }

    /// The endpoint asks in its way, the harness is asked in its own.
    async fn ask_keeper(&mut self) -> Result<()> {
        let call = json!({"name": "ask_keeper", "arguments": {"ship": "Albatross"}});
        let asked = lighthouse::question("Albatross");
        let yes = json!({"action": "accept", "content": {"enter": true}});
        self.page.said(Way::Asks, "tools/call ask_keeper Albatross");
        let id = self.harness.request("tools/call", call.clone()).await?;

        let result = match (self.harness.era, self.harness.next().await?) {
            (Era::Legacy, Message::Question { id: question, params }) => {
                self.show_question("elicitation/create", &params, &asked)?;
                self.page.said(Way::Asks, "the user's answer: yes");
                self.harness.reply(&question, yes).await?;
                self.answer(id).await?.result
            }
            (Era::Modern, Message::Result { id: theirs, result, .. })
                if theirs == id && result["resultType"] == "input_required" =>
            {
                let questions =
                    result["inputRequests"].as_object().ok_or("input_required without a question")?;
                let (key, question) = questions.iter().next().ok_or("input_required without a question")?;
                self.show_question("input_required", &question["params"], &asked)?;
                let mut again = call;
                again["inputResponses"] = json!({key: yes});
                again["requestState"] = result["requestState"].clone();
                self.page.said(Way::Asks, "tools/call ask_keeper again, with the user's answer: yes");
                self.ask("tools/call", again).await?.result
            }
            (_, other) => return Err(unexpected(&other).into()),
        };
        want(text_of(&result) == "The keeper lets the Albatross in.", || {
            format!("the answer did not reach the endpoint: {result}")
        })?;
        self.page.said(Way::Tells, text_of(&result));
        self.page.proven("the endpoint asked the user, and the answer found its way back");
        Ok(())
    }

    fn show_question(&mut self, form: &str, params: &Value, asked: &Value) -> Result<()> {
        self.overhear()?;
        want(params == asked, || format!("the question was altered on its way: {params}"))?;
        self.page.said(Way::Tells, format_args!("{form}: {}", params["message"]));
        Ok(())
    }

    /// A call that nobody wants any more ends at the endpoint too, and is not answered.
    async fn cancel(&mut self) -> Result<()> {
        let token = json!("watch-2");
        self.page.said(Way::Asks, "tools/call watch");
        let watch = self
            .harness
            .request(
                "tools/call",
                json!({"name": "watch", "arguments": {}, "_meta": {"progressToken": token}}),
            )
            .await?;
        match self.harness.next().await? {
            Message::Progress { token: theirs, progress, total, message } if theirs == token => {
                self.overhear()?;
                self.page.said(Way::Tells, format_args!("  {progress}/{total} {message}"));
            }
            other => return Err(unexpected(&other).into()),
        }

        self.page.said(Way::Asks, "notifications/cancelled (the watch)");
        let cancelled = Instant::now();
        self.harness.notify("notifications/cancelled", json!({"requestId": watch})).await?;
        let seen = timeout(CANCEL_LIMIT, self.endpoint.next_note()).await;
        match seen.map_err(|_| "the endpoint did not notice within two seconds")? {
            Some(entry) => match entry.seen {
                Seen::Cancelled(what) => {
                    self.page.said_at(entry.at, Way::Drops, format_args!("{what} is given up"));
                    self.page.proven(format_args!(
                        "the endpoint saw the call cancelled {:.1} ms later",
                        entry.at.saturating_duration_since(cancelled).as_secs_f64() * 1000.0
                    ));
                }
                Seen::Arrived(what) | Seen::Refused(what) => {
                    return Err(format!("instead of a cancelled call the endpoint saw: {what}").into());
                }
            },
            None => return Err("the endpoint is gone".into()),
        }

        // another call shows what else was said meanwhile: a last report may have been on its way, no answer
        self.page.said(Way::Asks, "tools/call look");
        let look = self.harness.request("tools/call", json!({"name": "look", "arguments": {}})).await?;
        loop {
            match self.harness.next().await? {
                Message::Progress { token: theirs, .. } if theirs == token => {}
                Message::Result { id, .. } if id == look => break,
                other => return Err(unexpected(&other).into()),
            }
        }
        self.overhear()?;
        self.page.said(Way::Tells, lighthouse::VIEW);
        self.page.proven("the cancelled call got no answer, and everything else goes on");
        Ok(())
    }

    async fn leave(self) -> Result<()> {
        self.page.said(Way::Asks, "(closes stdin)");
        let closed = Instant::now();
        let status = self.harness.leave().await?;
        let gone = closed.elapsed();
        want(status.success(), || format!("mcp-hasp ended with {status}"))?;
        want(gone < LEAVE_LIMIT, || format!("mcp-hasp took {} ms to leave", gone.as_millis()))?;
        // whatever the endpoint turned away was said there by mcp-hasp
        overhear(self.page, self.endpoint)?;
        self.page.proven(format_args!(
            "mcp-hasp left with exit code 0, {:.1} ms later",
            gone.as_secs_f64() * 1000.0
        ));
        Ok(())
    }

    /// Sends a request and takes its answer, which has to be the next message.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Answer> {
        let id = self.harness.request(method, params).await?;
        self.answer(id).await
    }

    async fn answer(&mut self, id: i64) -> Result<Answer> {
        let message = self.harness.next().await?;
        self.overhear()?;
        let Message::Result { id: theirs, result, line } = message else {
            return Err(unexpected(&message).into());
        };
        want(theirs == id, || format!("request {id} was answered as request {theirs}"))?;
        let complete = result["resultType"] == "complete";
        match self.harness.era {
            Era::Legacy => want(result.get("resultType").is_none(), || format!("a modern result: {line}"))?,
            Era::Modern => want(complete, || format!("a result that is not complete: {line}"))?,
        }
        Ok(Answer { result, line })
    }

    fn overhear(&mut self) -> Result<()> {
        overhear(self.page, self.endpoint)
    }
}

/// Tells what reached the endpoint meanwhile. It has to be well formed.
fn overhear(page: &Page, endpoint: &mut Endpoint) -> Result<()> {
    let mut arrived = Vec::new();
    let mut first = None;
    for entry in endpoint.noted() {
        match entry.seen {
            Seen::Arrived(what) => {
                first.get_or_insert(entry.at);
                arrived.push(what);
            }
            Seen::Cancelled(what) => return Err(format!("the endpoint saw {what} cancelled unasked").into()),
            Seen::Refused(why) => return Err(format!("the endpoint refused a request: {why}").into()),
        }
    }
    if let Some(at) = first {
        for few in arrived.chunks(3) {
            page.said_at(at, Way::Forwards, few.join(", "));
        }
    }
    Ok(())
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn unexpected(message: &Message) -> String {
    match message {
        Message::Result { line, .. } => format!("this answer was not expected here: {line}"),
        Message::Error { id, error } => format!("request {id} was answered with the error {error}"),
        Message::Progress { token, .. } => format!("progress for {token} was not expected here"),
        Message::Question { params, .. } => format!("a question was not expected here: {params}"),
    }
}

/// A check of the story: `wrong` says what there is instead.
fn want(right: bool, wrong: impl FnOnce() -> String) -> Result<()> {
    if right { Ok(()) } else { Err(wrong().into()) }
}

/// Puts the step before the reason.
fn at<E: std::fmt::Display>(step: &str) -> impl FnOnce(E) -> Box<dyn std::error::Error + Send + Sync> {
    move |error| format!("{step}: {error}").into()
}

const CANCEL_LIMIT: Duration = Duration::from_secs(2);
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
