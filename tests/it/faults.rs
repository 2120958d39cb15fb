//! Trouble at the endpoint is one error for the request concerned, and nothing else suffers.

mod http;
mod limits;
mod lines;
mod malformed;
mod redirects;
mod restart;
mod retry_after;
mod stream;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Endpoint, EndpointBuilder, Era, Harness, Recorded, Reply, Script};

const TOOLS: &str = concat!(
    r#"[{"name":"echo","inputSchema":{"type":"object"}},"#,
    r#"{"name":"sleep","inputSchema":{"type":"object"}},"#,
    r#"{"name":"broken","inputSchema":{"type":"object"}}]"#
);

const AWAKE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"awake"}]}"#;

/// An endpoint whose tool `broken` answers with a fault; `echo` works, and `sleep` waits for the gate.
fn faulty(
    era: Era,
    gate: &Arc<Notify>,
    fault: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
) -> EndpointBuilder {
    let gate = gate.clone();
    Endpoint::era(era).tools(TOOLS).on("tools/call", move |request| match request.subject() {
        "echo" => Reply::text(request.param("arguments")["text"].as_str().unwrap_or_default()),
        "sleep" => Reply::sse(Script::new().wait(&gate).result(AWAKE)),
        _ => fault(request),
    })
}

/// A harness and an endpoint in mid-session, with a call to `sleep` in flight.
struct Scene {
    endpoint: Endpoint,
    harness: Harness,
    gate: Arc<Notify>,
    sleeper: u64,
}

impl Scene {
    async fn open(
        harness_era: Era,
        endpoint_era: Era,
        args: &[&str],
        fault: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let gate = Arc::new(Notify::new());
        Self::on(harness_era, faulty(endpoint_era, &gate, fault), gate, args).await
    }

    async fn on(harness_era: Era, endpoint: EndpointBuilder, gate: Arc<Notify>, args: &[&str]) -> Self {
        let endpoint = endpoint.start().await;
        let mut harness = Harness::start(&endpoint.url(), args);
        harness.open(harness_era, "{}").await.result();
        let sleeper = harness.start_call("sleep", "{}").await;
        endpoint.arrived("tools/call", 0).await;
        Self { endpoint, harness, gate, sleeper }
    }

    /// Calls the broken tool; its one error has one of the reasons.
    async fn fails(&mut self, reasons: &[&str], arguments_raw: &str) -> Value {
        let answer = self.harness.call("broken", arguments_raw).await;
        let text = answer.text();
        assert!(answer.is_error(), "passed on as a success with {arguments_raw}: {text}");
        let error = answer.error();
        assert_eq!(error["code"], -32603, "{text}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
        let reason = error["data"]["reason"].as_str().unwrap_or_default();
        assert!(reasons.contains(&reason), "none of {reasons:?} with {arguments_raw}: {text}");
        error
    }

    /// How often the broken tool was called at the endpoint.
    fn broken_calls(&self) -> usize {
        let calls = self.endpoint.requests_of("tools/call");
        calls.iter().filter(|call| call.subject() == "broken").count()
    }

    /// The next call works, the one in flight is answered, no answer comes twice, and the program leaves well.
    async fn unaffected(mut self) {
        let echoed = self.harness.call("echo", r#"{"text":"still there"}"#).await;
        assert_eq!(echoed.result()["content"][0]["text"], "still there");
        self.gate.notify_one();
        let woken = self.harness.answer(self.sleeper).await;
        assert_eq!(woken.result()["content"][0]["text"], "awake");
        self.harness.close_stdin();
        assert_eq!(self.harness.wait_exit().await.0, 0, "{}", self.harness.stderr_text());
        self.endpoint.finish();
    }
}

/// The whole promise for one fault: one error, sent once, nothing else suffers.
async fn one_error(
    (harness_era, endpoint_era): (Era, Era),
    reasons: &[&str],
    status: Option<u16>,
    fault: impl Fn(&Recorded) -> Reply + Send + Sync + 'static,
) -> Value {
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    let error = scene.fails(reasons, "{}").await;
    if let Some(status) = status {
        assert_eq!(error["data"]["httpStatus"], status, "{error}");
    }
    assert_eq!(scene.broken_calls(), 1, "a tools/call must be sent once");
    scene.unaffected().await;
    error
}

/// Four tests, one per pair of eras: the fault is one error with one of the reasons.
///
/// `fault!(name, ["reason", …], Some(status), |request| Reply::…);`
macro_rules! fault {
    ($name:ident, $reasons:expr, $status:expr, |$request:pat_param| $reply:expr) => {
        $crate::support::four_eras!($name, |harness_era, endpoint_era| async {
            let eras = (harness_era, endpoint_era);
            $crate::faults::one_error(eras, &$reasons, $status, |$request: &Recorded| $reply).await;
        });
    };
}
use fault;

/// Bodies of which each, as JSON and as an event, has to be refused. `ID` stands for the id of the request.
async fn bodies_are_refused(
    (harness_era, endpoint_era): (Era, Era),
    reasons: &[&str],
    bodies: &'static [&'static str],
) {
    let fault = |request: &Recorded| {
        let arguments = request.param("arguments");
        let body = bodies[usize::try_from(arguments["n"].as_u64().unwrap()).unwrap()];
        let body = body.replace("ID", &request.id_raw());
        if arguments["as"] == "event" {
            Reply::sse(Script::new().event(body))
        } else {
            Reply::full(200, "application/json", body)
        }
    };
    let mut scene = Scene::open(harness_era, endpoint_era, &[], fault).await;
    for (n, body) in bodies.iter().enumerate() {
        for kind in ["json", "event"] {
            // the body goes along for the sake of the message of a failing test
            let arguments = json!({"n": n, "as": kind, "body": body.get(..200).unwrap_or(body)});
            scene.fails(reasons, &arguments.to_string()).await;
        }
    }
    assert_eq!(scene.broken_calls(), 2 * bodies.len(), "each tools/call must be sent once");
    scene.unaffected().await;
}

/// The most memory that the program ever had.
#[cfg(target_os = "linux")]
pub(crate) fn peak_kilobytes(harness: &Harness) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", harness.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
