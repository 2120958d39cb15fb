//! The openings of real harnesses, line by line as recorded, against an endpoint of either era.

use serde_json::json;

use crate::{
    opened::{BOTH, declared, exchange, leave, names, text},
    support::{Answer, Endpoint, Harness, Reply, Script},
};

/// Sends the lines one after the other, waits for the answer to each request, and keeps the last.
async fn play(harness: &mut Harness, lines: &[&str]) -> Answer {
    let mut last = None;
    for line in lines {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        match message.get("id") {
            Some(id) => last = Some(exchange(harness, &id.to_string(), line).await),
            None => harness.send_line(line.as_bytes()).await,
        }
        if let Some(answer) = &last {
            assert!(!answer.is_error(), "{line}: {}", answer.text());
        }
    }
    last.unwrap()
}

fn start(endpoint: &Endpoint) -> Harness {
    Harness::start(&endpoint.url(), &[])
}

const CALL: &str =
    r#"{"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}},"jsonrpc":"2.0","id":2}"#;
const INITIALIZED: &str = r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#;
const LIST: &str = r#"{"method":"tools/list","jsonrpc":"2.0","id":1}"#;

#[tokio::test]
async fn claude_code_of_the_initialize_generation_is_served() {
    const INITIALIZE: &str = r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"claude-code","version":"2.1.197"}},"jsonrpc":"2.0","id":0}"#;
    for era in BOTH {
        let endpoint = Endpoint::era(era).start().await;
        let mut harness = start(&endpoint);
        let tools = play(&mut harness, &[INITIALIZE, INITIALIZED, LIST]).await.result();
        assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
        assert_eq!(text(&play(&mut harness, &[CALL]).await), "hi");
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{}}}));
        leave(&mut harness).await;
    }
}

/// The envelope of Claude Code 2.1.332.
const CLAUDE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"claude-code","title":"Claude Code","version":"2.1.332"},"io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}}}}"#;

fn claude(id: &str, method: &str, members: &str) -> String {
    format!(r#"{{"method":"{method}","params":{{{members}{CLAUDE}}},"jsonrpc":"2.0","id":{id}}}"#)
}

#[tokio::test]
async fn claude_code_that_probes_listens_and_discovers_again_is_served() {
    for era in BOTH {
        let endpoint = Endpoint::era(era).start().await;
        let mut harness = start(&endpoint);
        play(&mut harness, &[&claude(r#""server-discover-probe-1""#, "server/discover", "")]).await;
        let listen =
            claude(r#""listen:0""#, "subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
        harness.send_line(listen.as_bytes()).await;
        let tools = [claude("0", "server/discover", ""), claude("1", "tools/list", "")];
        let tools = play(&mut harness, &tools.each_ref().map(String::as_str)).await.result();
        assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
        let acknowledged = harness.next_notification("notifications/subscriptions/acknowledged").await;
        assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "listen:0");
        assert_eq!(acknowledged["params"]["notifications"], json!({}), "changes of tools are not told");
        let call = claude("2", "tools/call", r#""name":"echo","arguments":{"text":"hi"},"#);
        assert_eq!(text(&play(&mut harness, &[&call]).await), "hi");
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{},"url":{}}}));
        leave(&mut harness).await;
        assert!(harness.lines().iter().all(|line| line["id"] != "listen:0" || line.get("error").is_none()));
    }
}

#[tokio::test]
async fn claude_code_that_initializes_after_a_good_probe_is_served() {
    const INITIALIZE: &str = r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"claude-code","title":"Claude Code","version":"2.1.332"}},"jsonrpc":"2.0","id":0}"#;
    for era in BOTH {
        let endpoint = Endpoint::era(era).start().await;
        let mut harness = start(&endpoint);
        let probe = claude(r#""server-discover-probe-1""#, "server/discover", "");
        let tools = play(&mut harness, &[&probe, INITIALIZE, INITIALIZED, LIST]).await.result();
        assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
        assert!(tools.get("resultType").is_none(), "{tools}");
        assert_eq!(text(&play(&mut harness, &[CALL]).await), "hi");
        leave(&mut harness).await;
    }
}

#[tokio::test]
async fn codex_is_served() {
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"codex-mcp-client","title":"Codex","version":"0.171.0"}}}"#;
    const LISTS: [&str; 3] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":0}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/templates/list","params":{"_meta":{"progressToken":1}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"resources/list","params":{"_meta":{"progressToken":2}}}"#,
    ];
    const CALL: &str = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"threadId":"019a","progressToken":3},"name":"echo","arguments":{"text":"hi"}}}"#;
    for era in BOTH {
        let endpoint = Endpoint::era(era).start().await;
        let mut harness = start(&endpoint);
        let opening = play(&mut harness, &[INITIALIZE, INITIALIZED]).await;
        assert_eq!(opening.result()["protocolVersion"], "2025-06-18");
        for list in LISTS {
            harness.send_line(list.as_bytes()).await;
        }
        assert_eq!(harness.answer_to("3").await.result()["resources"][0]["uri"], "memo://one");
        assert_eq!(
            harness.answer_to("2").await.result()["resourceTemplates"][0]["uriTemplate"],
            "memo://{name}"
        );
        assert_eq!(harness.answer_to("1").await.result()["tools"][0]["name"], "echo");
        assert_eq!(text(&play(&mut harness, &[CALL]).await), "hi");
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(call.param("_meta")["threadId"], "019a");
        assert_eq!(call.param("_meta")["progressToken"], 3);
        // its revision has no URL mode, whatever it declares
        assert_eq!(declared(&endpoint, &call), json!({"elicitation":{"form":{}}}));
        leave(&mut harness).await;
    }
}

#[tokio::test]
async fn opencode_is_served() {
    const INITIALIZE: &str = r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"opencode","version":"1.18.33"}},"jsonrpc":"2.0","id":0}"#;
    for era in BOTH {
        let endpoint = Endpoint::era(era).start().await;
        let mut harness = start(&endpoint);
        let tools = play(&mut harness, &[INITIALIZE, INITIALIZED, LIST]).await.result();
        assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
        assert_eq!(text(&play(&mut harness, &[CALL]).await), "hi");
        let call = endpoint.arrived("tools/call", 0).await;
        assert_eq!(declared(&endpoint, &call), json!({}));
        leave(&mut harness).await;
    }
}

#[tokio::test]
async fn the_inspector_is_served() {
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/skills":{}}},"clientInfo":{"name":"inspector-cli","version":"2.12.0"}}}"#;
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    for era in BOTH {
        let endpoint = Endpoint::era(era).start().await;
        let mut harness = start(&endpoint);
        let tools = play(&mut harness, &[INITIALIZE, INITIALIZED, LIST]).await.result();
        assert_eq!(names(&tools["tools"]), ["echo", "sleep", "ask"]);
        assert_eq!(text(&play(&mut harness, &[CALL]).await), "hi");
        let call = endpoint.arrived("tools/call", 0).await;
        let extensions = json!({"extensions":{"io.modelcontextprotocol/skills":{}}});
        assert_eq!(declared(&endpoint, &call), extensions);
        leave(&mut harness).await;
    }
}

#[tokio::test]
async fn initialize_may_come_before_the_endpoint_is_ready() {
    const INITIALIZE: &str = r#"{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}},"jsonrpc":"2.0","id":0}"#;
    let gate = std::sync::Arc::new(tokio::sync::Notify::new());
    let open = gate.clone();
    let pages = Endpoint::modern().on("tools/list", move |_| {
        let tools = r#"{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}"#;
        Reply::sse(Script::new().wait(&gate).result(tools))
    });
    let endpoint = pages.start().await;
    let mut harness = start(&endpoint);
    harness.send_line(INITIALIZE.as_bytes()).await;
    endpoint.arrived("tools/list", 0).await;
    assert!(harness.lines().is_empty(), "nothing is answered from a surface that is not read whole");
    open.notify_one();
    assert!(!harness.answer_to("0").await.is_error());
}
