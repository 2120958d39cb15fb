//! What is shown: one visit of a harness to the endpoint, through mcp-hasp, told once for each era.
//!
//! Every step looks at what came back and at what reached the endpoint, and the first that is not as it
//! should be ends the demonstration. A further promise of mcp-hasp is a further step in [`Visit::all`], or a
//! visit of its own; pinning has its own story in `pinning.rs`.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::Result;
use crate::endpoint::{self, Endpoint, Entry, Seen};
use crate::harness::{self, Era, Harness, Message};
use crate::lighthouse::{self, Edition};
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
    let harness = Harness::start(era, program, &endpoint.url, config_dir, NOTHING_FURTHER)?;
    let outcome = Visit { page, endpoint, harness }.all(started).await;
    outcome.map_err(|error| match endpoint.refusal() {
        // what went wrong at the harness may have begun at the endpoint
        Some(why) => format!("{error}; the endpoint refused a request: {why}").into(),
        None => error,
    })
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
    async fn all(mut self, started: Instant) -> Result<()> {
        self.open(started).await.map_err(at("opening"))?;
        self.list_tools().await.map_err(at("listing the tools"))?;
        self.look().await.map_err(at("calling a tool"))?;
        self.read().await.map_err(at("reading a resource and a prompt"))?;
        self.watch_and_signal().await.map_err(at("a long and a short call"))?;
        self.ask_keeper().await.map_err(at("a question to the user"))?;
        self.cancel().await.map_err(at("cancelling a call"))?;
        self.leave().await.map_err(at("leaving"))
    }

    // === the steps ===

    /// Both eras start differently and get the same: the endpoint's instructions, read beforehand.
    async fn open(&mut self, started: Instant) -> Result<()> {
        let version = self.harness.era.version();
        let (method, params) = match self.harness.era {
            Era::Legacy => (
                "initialize",
                json!({
                    "protocolVersion": version,
                    "capabilities": harness::client_capabilities(),
                    "clientInfo": harness::client_info(),
                }),
            ),
            Era::Modern => ("server/discover", json!({})),
        };
        self.page.said(Way::Asks, format_args!("{method} ({version})"));
        let id = self.harness.request(method, params).await?;
        let Answer { result, line } = self.answer(id).await?;
        let ready = started.elapsed();
        let agreed = match self.harness.era {
            Era::Legacy => result["protocolVersion"] == version,
            Era::Modern => {
                result["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!(version)))
            }
        };
        want(agreed, || format!("mcp-hasp did not agree to {version}: {line}"))?;
        want(result["instructions"] == lighthouse::INSTRUCTIONS, || {
            format!("these are not the endpoint's instructions: {line}")
        })?;
        if self.harness.era == Era::Legacy {
            self.harness.notify("notifications/initialized", json!({})).await?;
        }
        self.page.said(Way::Tells, "the endpoint's instructions");
        self.page.proven(format_args!(
            "{version} with this harness, {} with the endpoint; ready {} after its start",
            endpoint::VERSION,
            Millis(ready)
        ));
        Ok(())
    }

    /// The list is one that mcp-hasp has read to its end before it said a word.
    async fn list_tools(&mut self) -> Result<()> {
        self.page.said(Way::Asks, "tools/list");
        let id = self.harness.request("tools/list", json!({})).await?;
        let Answer { result, line } = self.answer(id).await?;
        let tools = lighthouse::tools(Edition::First);
        want(result["tools"].as_array() == Some(&tools), || {
            format!("these are not the endpoint's tools: {line}")
        })?;
        let names: Vec<_> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        self.page.said(Way::Tells, names.join(", "));
        self.page.proven("both pages of the list, each tool just as the endpoint describes it");
        Ok(())
    }

    async fn look(&mut self) -> Result<()> {
        let id = self.pass("tools/call", call("look", json!({})), "tools/call look").await?;
        let Answer { line, .. } = self.answer(id).await?;
        want(line.contains(lighthouse::VIEW), || format!("the view was altered on its way: {line}"))?;
        self.page.said(Way::Back, lighthouse::VIEW);
        self.page.proven("a result arrives as it was sent: 12.50 is still 12.50");
        Ok(())
    }

    async fn read(&mut self) -> Result<()> {
        let (uri, prompt) = (lighthouse::LOG_URI, lighthouse::REPORT);

        let id = self.pass("resources/read", json!({"uri": uri}), &format!("resources/read {uri}")).await?;
        let Answer { result, line } = self.answer(id).await?;
        want(result["contents"] == lighthouse::log(), || format!("this is not the log: {line}"))?;
        self.page.said(Way::Back, &result["contents"][0]["text"]);

        let id = self.pass("prompts/get", json!({"name": prompt}), &format!("prompts/get {prompt}")).await?;
        let Answer { result, line } = self.answer(id).await?;
        want(result["messages"] == lighthouse::report(), || format!("this is not the prompt: {line}"))?;
        self.page.said(Way::Back, &result["messages"][0]["content"]["text"]);

        self.page.proven("resources and prompts pass as tools do");
        Ok(())
    }

    /// The long call reports as it goes on, and a short one that is sent meanwhile does not wait for it.
    async fn watch_and_signal(&mut self) -> Result<()> {
        let steps = lighthouse::WATCH.len();
        let token = json!("first-watch");
        let watch = self.pass("tools/call", watch_call(&token), "tools/call watch (two seconds)").await?;
        for step in 1..=2 {
            self.report(&token, step).await?;
        }

        let params = call("signal", json!({"ship": "Zoë", "message": "keep to the east"}));
        let asked = Instant::now();
        let signal = self.pass("tools/call", params, "tools/call signal (meanwhile)").await?;
        // a report may come in between; the result of the watch may not
        let mut step = 3;
        let result = loop {
            match self.harness.next().await? {
                Message::Progress { .. } if step > steps => {
                    return Err("the watch had too many reports".into());
                }
                message @ Message::Progress { .. } => {
                    self.show_report(&message, &token, step)?;
                    step += 1;
                }
                message => break self.complete(message, signal)?.result,
            }
        };
        let took = asked.elapsed();
        want(text_of(&result) == "Zoë was sent: keep to the east", || {
            format!("the signal was answered with {result}")
        })?;
        self.page.said(Way::Back, text_of(&result));

        for step in step..=steps {
            self.report(&token, step).await?;
        }
        let Answer { result, line } = self.answer(watch).await?;
        want(text_of(&result).starts_with("The watch is over"), || {
            format!("the watch was answered with {line}")
        })?;
        self.page.said(Way::Back, text_of(&result));
        self.page.proven("progress came while the call went on, every step in its order");
        self.page.proven(format_args!(
            "the short call did not wait for the long one: answered after {}",
            Millis(took)
        ));
        Ok(())
    }

    /// The endpoint asks in the way of its era, the harness is asked in the way of its own.
    async fn ask_keeper(&mut self) -> Result<()> {
        let label = "tools/call ask_keeper";
        let call = call("ask_keeper", json!({"ship": "Albatross"}));
        let yes = json!({"action": "accept", "content": {"enter": true}});
        let first = self.pass("tools/call", call.clone(), label).await?;
        let second = match (self.harness.era, self.harness.next().await?) {
            // a request of the server, while the call stays open
            (Era::Legacy, Message::Question { id, params }) => {
                self.show_question("elicitation/create", &params)?;
                self.harness.reply(&id, yes).await?;
                first
            }
            // a result that asks, and the same call once more with the answer
            (Era::Modern, Message::Result { id, result, .. })
                if id == first && result["resultType"] == "input_required" =>
            {
                let questions = result["inputRequests"].as_object().and_then(|all| all.iter().next());
                let (key, question) = questions.ok_or("input_required without a question")?;
                self.show_question("input_required", &question["params"])?;
                let mut again = call;
                again["inputResponses"] = json!({key: yes});
                again["requestState"] = result["requestState"].clone();
                self.harness.request("tools/call", again).await?
            }
            (_, other) => return Err(unexpected(&other).into()),
        };
        self.arrival(label, "yes, says the user").await?;
        let Answer { result, .. } = self.answer(second).await?;
        want(text_of(&result) == "The keeper lets the Albatross in.", || {
            format!("the answer did not reach the endpoint: {result}")
        })?;
        self.page.said(Way::Back, text_of(&result));
        self.page.proven("the endpoint asked the user, and the answer found its way back");
        Ok(())
    }

    /// A call that nobody wants any more ends at the endpoint too, and is not answered.
    async fn cancel(&mut self) -> Result<()> {
        let token = json!("second-watch");
        let watch = self.pass("tools/call", watch_call(&token), "tools/call watch").await?;
        self.report(&token, 1).await?;

        let cancelled = Instant::now();
        self.harness.notify("notifications/cancelled", json!({"requestId": watch})).await?;
        let entry = match timeout(CANCEL_LIMIT, self.endpoint.next_note()).await {
            Ok(entry) => entry?,
            Err(_) => return Err("the endpoint did not notice within two seconds".into()),
        };
        match entry.seen {
            Seen::Cancelled(_) => {}
            Seen::Arrived(what) => return Err(format!("the endpoint did not notice, but got {what}").into()),
            Seen::Refused(why) => return Err(refused(&why).into()),
        }
        let took = entry.at.saturating_duration_since(cancelled);
        self.page.said_at(entry.at, Way::Drops, "notifications/cancelled");
        self.page.proven(format_args!("the endpoint saw the call cancelled, {} after that", Millis(took)));

        // the next call shows what else was said: a last report may have been on its way, but no answer
        let look = self.pass("tools/call", call("look", json!({})), "tools/call look").await?;
        loop {
            match self.harness.next().await? {
                Message::Progress { token: theirs, .. } if theirs == token => {}
                message => {
                    self.complete(message, look)?;
                    break;
                }
            }
        }
        self.page.said(Way::Back, lighthouse::VIEW);
        self.page.proven("the cancelled call got no answer, and everything else goes on");
        Ok(())
    }

    async fn leave(self) -> Result<()> {
        self.page.said(Way::Asks, "(closes its end)");
        let closed = Instant::now();
        let status = self.harness.leave().await?.status;
        let took = closed.elapsed();
        want(status.success(), || format!("mcp-hasp ended with {status}"))?;
        want(took < LEAVE_LIMIT, || format!("mcp-hasp took {} to leave", Millis(took)))?;
        overhear(self.page, self.endpoint)?;
        self.page.proven(format_args!("mcp-hasp left with exit code 0, {} after that", Millis(took)));
        Ok(())
    }

    // === what the steps are made of ===

    /// Sends a request and sees it arrive at the endpoint.
    async fn pass(&mut self, method: &str, params: Value, label: &str) -> Result<i64> {
        let id = self.harness.request(method, params).await?;
        // what stands in brackets is for the reader
        let arrives = label.split(" (").next().unwrap_or(label);
        self.arrival(arrives, label).await?;
        Ok(id)
    }

    /// Waits until the endpoint has noted this request.
    async fn arrival(&mut self, arrives: &str, shown: &str) -> Result<()> {
        loop {
            let Ok(entry) = timeout(ARRIVAL_LIMIT, self.endpoint.next_note()).await else {
                let instead = unexpected(&self.harness.next().await?);
                return Err(format!("{arrives} did not reach the endpoint; {instead}").into());
            };
            let entry = entry?;
            match entry.seen {
                Seen::Arrived(what) if what == arrives => {
                    self.page.said_at(entry.at, Way::Through, shown);
                    return Ok(());
                }
                // mcp-hasp may look after its own affairs at any time, but makes no call that nobody asked for
                Seen::Arrived(what) if !what.starts_with("tools/call") => {
                    self.page.said_at(entry.at, Way::Reads, what);
                }
                Seen::Arrived(what) => return Err(format!("instead of {arrives} came {what}").into()),
                Seen::Cancelled(what) => return Err(format!("{what} was given up unasked").into()),
                Seen::Refused(why) => return Err(refused(&why).into()),
            }
        }
    }

    /// The next message, which has to be the complete result of this request.
    async fn answer(&mut self, id: i64) -> Result<Answer> {
        let message = self.harness.next().await?;
        overhear(self.page, self.endpoint)?;
        self.complete(message, id)
    }

    fn complete(&self, message: Message, id: i64) -> Result<Answer> {
        let Message::Result { id: theirs, result, line } = message else {
            return Err(unexpected(&message).into());
        };
        want(theirs == id, || format!("instead of request {id}, {theirs} was answered: {line}"))?;
        let kind = result.get("resultType");
        match self.harness.era {
            Era::Legacy => want(kind.is_none(), || format!("this result is of the other era: {line}"))?,
            Era::Modern => {
                want(kind == Some(&json!("complete")), || format!("this result is not complete: {line}"))?
            }
        }
        Ok(Answer { result, line })
    }

    /// The next message, which has to be this step of a watch.
    async fn report(&mut self, token: &Value, step: usize) -> Result<()> {
        let message = self.harness.next().await?;
        self.show_report(&message, token, step)
    }

    fn show_report(&mut self, message: &Message, token: &Value, step: usize) -> Result<()> {
        let steps = lighthouse::WATCH.len();
        let expected = lighthouse::WATCH.get(step - 1).copied().unwrap_or_default();
        match message {
            Message::Progress { token: theirs, progress, total, message }
                if theirs == token
                    && *progress == json!(step)
                    && *total == json!(steps)
                    && message == expected =>
            {
                self.page.said(Way::Back, format_args!("  {step}/{steps} {message}"));
                Ok(())
            }
            other => Err(format!("instead of step {step} of the watch: {}", unexpected(other)).into()),
        }
    }

    fn show_question(&mut self, form: &str, params: &Value) -> Result<()> {
        want(*params == lighthouse::question("Albatross"), || {
            format!("the question was altered on its way: {params}")
        })?;
        self.page
            .said(Way::Back, format_args!("{} ({form})", params["message"].as_str().unwrap_or_default()));
        Ok(())
    }
}

/// Tells what mcp-hasp asked of the endpoint meanwhile.
fn overhear(page: &Page, endpoint: &mut Endpoint) -> Result<()> {
    let mut asked: Vec<(Instant, String, usize)> = Vec::new();
    for Entry { at, seen } in endpoint.noted() {
        match seen {
            Seen::Arrived(what) => match asked.last_mut() {
                Some((_, last, times)) if *last == what => *times += 1,
                _ => asked.push((at, what, 1)),
            },
            Seen::Cancelled(what) => return Err(format!("{what} was given up unasked").into()),
            Seen::Refused(why) => return Err(refused(&why).into()),
        }
    }
    for (at, what, times) in asked {
        let pages = if times > 1 { format!(" ({times} pages)") } else { String::new() };
        page.said_at(at, Way::Reads, format_args!("{what}{pages}"));
    }
    Ok(())
}

pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

fn watch_call(token: &Value) -> Value {
    json!({"name": "watch", "arguments": {}, "_meta": {"progressToken": token}})
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

pub(crate) fn unexpected(message: &Message) -> String {
    match message {
        Message::Result { line, .. } => format!("mcp-hasp said {line}"),
        Message::Error { id, error } => format!("mcp-hasp answered request {id} with the error {error}"),
        Message::Progress { token, progress, .. } => {
            format!("mcp-hasp reported progress {progress} for {token}")
        }
        Message::Question { params, .. } => format!("mcp-hasp asked {params}"),
    }
}

fn refused(why: &str) -> String {
    format!("the endpoint refused a request: {why}")
}

/// A check of the story: `wrong` says what there is instead.
pub(crate) fn want(right: bool, wrong: impl FnOnce() -> String) -> Result<()> {
    if right { Ok(()) } else { Err(wrong().into()) }
}

/// Puts the step before the reason.
pub(crate) fn at<E: std::fmt::Display>(
    step: &str,
) -> impl FnOnce(E) -> Box<dyn std::error::Error + Send + Sync> {
    move |error| format!("{step}: {error}").into()
}

/// A duration as people read it.
struct Millis(Duration);

impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1000.0)
    }
}

const NOTHING_FURTHER: [&str; 0] = [];
const ARRIVAL_LIMIT: Duration = Duration::from_secs(2);
const CANCEL_LIMIT: Duration = Duration::from_secs(2);
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
