//! Walks a plan with rmcp's client and prints what came back as JSON.
//!
//! `interop-client --era legacy|auto --plan FILE (--url URL | -- COMMAND ARGS…)`
#![expect(clippy::print_stdout, reason = "its report goes to stdout")]
#![expect(deprecated, reason = "logging is deprecated in 2026-07-28, and still to be relayed")]

use std::collections::VecDeque;
use std::error::Error;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, ClientConfig, ClientRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ErrorData, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, ServerNotification,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What arrived during the current step, in order, and what the user will say when asked.
#[derive(Default)]
struct Shared {
    events: Vec<Value>,
    answers: VecDeque<Value>,
    /// "the question": accept and repeat it; "nothing": leave it open.
    mood: String,
    /// rmcp asks for progress with every request
    progress_wanted: bool,
}

#[derive(Clone)]
struct User {
    shared: Arc<Mutex<Shared>>,
    config: ClientConfig,
}

impl User {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saw(&self, event: Value) {
        self.shared().events.push(event);
    }
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let asked = plain(&params).map_err(|trouble| ErrorData::internal_error(trouble.to_string(), None))?;
        let mood = self.shared().mood.clone();
        if mood == "nothing" {
            std::future::pending::<()>().await;
        }
        let mut shared = self.shared();
        let (message, schema, url) =
            (member(&asked, "message"), member(&asked, "requestedSchema"), member(&asked, "url"));
        shared.events.push(json!({"asked": {"message": message, "schema": schema, "url": url}}));
        let reply = if mood == "the question" {
            json!({"action": "accept", "content": {"allow": true, "name": message}})
        } else {
            shared.answers.pop_front().unwrap_or_else(|| json!({"action": "cancel"}))
        };
        typed(reply).map_err(|trouble| ErrorData::internal_error(trouble.to_string(), None))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.saw(json!({"sampled": member(&plain(&params).unwrap_or_default(), "messages")}));
        let content = json!({"type": "text", "text": "a sample"});
        typed(json!({"role": "assistant", "model": "interop", "content": content}))
            .map_err(|trouble| ErrorData::internal_error(trouble.to_string(), None))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        typed(json!({"roots": [{"uri": "file:///kit", "name": "kit"}]}))
            .map_err(|trouble| ErrorData::internal_error(trouble.to_string(), None))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if self.shared().progress_wanted {
            let mut report = plain(&params).unwrap_or_default();
            report.as_object_mut().and_then(|report| report.remove("progressToken"));
            self.saw(json!({"progress": report}));
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.saw(json!({"log": plain(&params).unwrap_or_default()}));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.saw(json!({"updated": params.uri}));
    }
}

struct Walk {
    client: RunningService<RoleClient, User>,
    user: User,
    modern: bool,
}

impl Walk {
    async fn step(&self, step: &Value) -> Outcome<Value> {
        match text(step, "do").as_str() {
            "hello" => self.hello(),
            "list" => self.list(&text(step, "what")).await,
            "read" => plain(&self.client.read_resource(typed(json!({"uri": member(step, "uri")}))?).await?),
            "prompt" => {
                let mut params = json!({"name": member(step, "prompt")});
                copy(step, "arguments", &mut params);
                plain(&self.client.get_prompt(typed(params)?).await?)
            }
            "complete" => {
                let mut params = json!({"ref": member(step, "ref"), "argument": member(step, "argument")});
                copy(step, "context", &mut params);
                self.ask("completion/complete", params).await
            }
            "call" => {
                if !self.modern && step.get("log").is_some() {
                    self.ask("logging/setLevel", json!({"level": member(step, "log")})).await?;
                }
                self.call(step).await
            }
            "crowd" => self.crowd(step).await,
            "cancel" => {
                // Dropping the call is how rmcp cancels it.
                let settled = tokio::select! {
                    _ = self.call(step) => "with a result",
                    stop = self.time_to_cancel(step) => stop.map(|()| "cancelled")?,
                };
                self.user.saw(json!({"settled": settled}));
                self.call(&member(step, "witness")).await
            }
            "overtake" => self.overtake(&member(step, "slow"), &member(step, "quick")).await,
            "updates" => self.updates(&text(step, "uri"), &member(step, "trigger")).await,
            "unsolicitedLog" => self.unsolicited_log(step).await,
            other => Err(format!("no such step: {other}").into()),
        }
    }

    fn hello(&self) -> Outcome<Value> {
        let peer = self.client.peer_info().ok_or("the server did not introduce itself")?;
        let peer = plain(&*peer)?;
        Ok(
            json!({"instructions": member(&peer, "instructions"), "capabilities": member(&peer, "capabilities")}),
        )
    }

    async fn list(&self, what: &str) -> Outcome<Value> {
        let method = if what == "resourceTemplates" {
            "resources/templates/list".into()
        } else {
            format!("{what}/list")
        };
        let (mut all, mut cursor) = (Vec::new(), None::<Value>);
        loop {
            let mut page =
                self.ask(&method, cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}))).await?;
            let page = page.as_object_mut().ok_or("a list is no object")?;
            if let Some(Value::Array(items)) = page.remove(what) {
                all.extend(items);
            }
            cursor = page.remove("nextCursor");
            if cursor.is_none() {
                page.insert(what.into(), all.into());
                return Ok(Value::Object(page.clone()));
            }
        }
    }

    async fn ask(&self, method: &str, params: Value) -> Outcome<Value> {
        let request: ClientRequest = typed(json!({"method": method, "params": params}))?;
        plain(&self.client.send_request(request).await?)
    }

    /// The high-level call, which answers `input_required` by itself.
    async fn call(&self, step: &Value) -> Outcome<Value> {
        let arguments = step.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let mut params = json!({"name": member(step, "tool"), "arguments": arguments});
        if let (true, Some(level), Value::Object(params)) = (self.modern, step.get("log"), &mut params) {
            params.insert("_meta".into(), json!({LOG_LEVEL: level}));
        }
        let params: CallToolRequestParams = typed(params)?;
        plain(&self.client.call_tool(params).await?)
    }

    async fn time_to_cancel(&self, step: &Value) -> Outcome<()> {
        if let Some(when) = step.get("when") {
            self.call(when).await?;
        } else if text(step, "answers") == "nothing" {
            self.until(|event| event.get("asked").is_some()).await;
        } else {
            sleep(millis(step, "afterMs")).await;
        }
        Ok(())
    }

    async fn overtake(&self, slow: &Value, quick: &Value) -> Outcome<Value> {
        let order = Mutex::new(Vec::new());
        let one = async |name: &str, step: &Value| {
            let result = self.call(step).await?;
            order.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
            Outcome::Ok(member(&result, "content"))
        };
        let (slow, quick) = tokio::join!(one("slow", slow), one("quick", quick));
        let order = order.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(json!({"order": order, "results": [slow?, quick?]}))
    }

    async fn crowd(&self, step: &Value) -> Outcome<Value> {
        let (tool, names) = (member(step, "tool"), member(step, "names"));
        let calls = names.as_array().into_iter().flatten().map(|name| {
            let step = json!({"tool": tool, "arguments": {"name": name}});
            async move {
                match self.call(&step).await {
                    Ok(result) => member(&result, "content"),
                    Err(trouble) => json!({"code": member(&refusal(&*trouble), "code")}),
                }
            }
        });
        let results = all(calls).await;
        let message = |event: &Value| event.pointer("/asked/message").map(Value::to_string);
        self.user.shared().events.sort_by_key(message);
        Ok(json!({"results": results}))
    }

    async fn updates(&self, uri: &str, trigger: &Value) -> Outcome<Value> {
        if self.modern {
            let mut listening = self.client.listen(typed(json!({"resourceSubscriptions": [uri]}))?).await?;
            self.call(trigger).await?;
            if let Ok(Ok(Some(ServerNotification::ResourceUpdatedNotification(update)))) =
                timeout(Duration::from_secs(3), listening.next()).await
            {
                self.user.saw(json!({"updated": update.params.uri}));
            }
            listening.cancel().await?;
        } else {
            self.ask("resources/subscribe", json!({"uri": uri})).await?;
            self.call(trigger).await?;
            self.until(|event| event.get("updated").is_some()).await;
            self.ask("resources/unsubscribe", json!({"uri": uri})).await?;
        }
        Ok(json!({}))
    }

    async fn unsolicited_log(&self, step: &Value) -> Outcome<Value> {
        if self.modern {
            return Ok(json!({"skipped": "a modern client gets logs inside its own requests alone"}));
        }
        self.ask("logging/setLevel", json!({"level": member(step, "level")})).await?;
        self.call(&member(step, "on")).await?;
        self.until(|event| event.get("log").is_some()).await;
        self.call(&member(step, "off")).await?;
        let events = std::mem::take(&mut self.user.shared().events);
        Ok(json!({"arrived": events.iter().any(|event| event.get("log").is_some())}))
    }

    async fn until(&self, wanted: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(3);
        while Instant::now() < deadline && !self.user.shared().events.iter().any(&wanted) {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn connect(era: &str, user: &User, url: Option<&str>, command: &[String]) -> Outcome<Walk> {
    let lifecycle = match era {
        "legacy" => ClientLifecycleMode::Initialize,
        _ => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        },
    };
    let client = if let Some(url) = url {
        user.clone().serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle).await?
    } else {
        let (program, args) = command.split_first().ok_or("neither a URL nor a command")?;
        let mut command = tokio::process::Command::new(program);
        command.args(args);
        user.clone().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    let modern =
        client.peer_info().is_some_and(|peer| peer.protocol_version == ProtocolVersion::V_2026_07_28);
    Ok(Walk { client, user: user.clone(), modern })
}

async fn run(arguments: &[String], report: &mut Map<String, Value>) -> Outcome<()> {
    let cut = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (options, command) = arguments.split_at(cut);
    let option = |name: &str| options.iter().skip_while(|option| *option != name).nth(1).map(String::as_str);
    let plan = std::fs::read_to_string(option("--plan").ok_or("no --plan")?)?;
    let plan: Value = serde_json::from_str(&plan)?;
    let capabilities = plan.get("capabilities").cloned();
    let user = User {
        shared: Arc::default(),
        config: typed(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities.unwrap_or_else(|| json!({"elicitation": {"form": {}, "url": {}}})),
            "clientInfo": {"name": "interop", "version": "1"},
        }))?,
    };
    let walk =
        connect(option("--era").unwrap_or("auto"), &user, option("--url"), command.get(1..).unwrap_or(&[]))
            .await?;
    let peer = walk.client.peer_info().ok_or("the server did not introduce itself")?;
    report.insert("version".into(), plain(&peer.protocol_version)?);
    let mut steps = Map::new();
    for step in member(&plan, "steps").as_array().into_iter().flatten() {
        user.shared().events.clear();
        user.shared().answers = member(step, "answers").as_array().cloned().unwrap_or_default().into();
        user.shared().mood = text(step, "answers");
        user.shared().progress_wanted = member(step, "progress") == json!(true);
        let begun = Instant::now();
        let mut entry = match walk.step(step).await {
            Ok(result) => json!({"result": result}),
            Err(trouble) => json!({"error": refusal(&*trouble)}),
        };
        let took = u64::try_from(begun.elapsed().as_millis())?;
        sleep(millis(step, "settleMs")).await;
        if let Value::Object(entry) = &mut entry {
            let mut events = user.shared().events.clone();
            // rmcp handles each notification in a task of its own; the order on the wire is judged elsewhere
            events.sort_by_key(|event| {
                event.pointer("/progress/progress").and_then(Value::as_f64).map(f64::to_bits)
            });
            entry.insert("ms".into(), took.into());
            entry.insert("events".into(), events.into());
        }
        steps.insert(text(step, "name"), entry);
        report.insert("steps".into(), steps.clone().into());
    }
    walk.client.cancel().await?;
    Ok(())
}

fn refusal(trouble: &(dyn Error + Send + Sync + 'static)) -> Value {
    match trouble.downcast_ref::<ServiceError>() {
        Some(ServiceError::McpError(error)) => plain(error).unwrap_or_default(),
        _ => json!({"code": null, "message": trouble.to_string()}),
    }
}

/// What each of the futures gives, once all have ended.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut end = Poll::Ready(());
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => end = Poll::Pending,
            }
        }
        end
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

fn plain(value: &impl Serialize) -> Outcome<Value> {
    Ok(serde_json::to_value(value)?)
}

fn typed<T: DeserializeOwned>(value: Value) -> Outcome<T> {
    Ok(serde_json::from_value(value)?)
}

fn member(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or_default()
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn millis(step: &Value, name: &str) -> Duration {
    Duration::from_millis(step.get(name).and_then(Value::as_u64).unwrap_or(0))
}

fn copy(from: &Value, name: &str, to: &mut Value) {
    if let (Some(value), Value::Object(to)) = (from.get(name), to) {
        to.insert(name.into(), value.clone());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut report = Map::from_iter([("steps".to_owned(), json!({})), ("notices".to_owned(), json!([]))]);
    if let Err(trouble) = run(&arguments, &mut report).await {
        report.insert("failed".into(), trouble.to_string().into());
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
