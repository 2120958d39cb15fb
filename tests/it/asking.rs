//! Endpoints that ask the user something, and a harness that answers: for the tests about questions.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    opened::{cacheable, complete},
    support::{Answer, Endpoint, EndpointBuilder, Era, Harness, Recorded, Reply, Script},
};

/// A question: its method and its params.
pub type Question = (&'static str, &'static str);

/// A form, as an elicitation.
pub const FORM: Question = (
    "elicitation/create",
    r#"{"mode":"form","message":"Command blue/runner? \u00fc","requestedSchema":{"type":"object","properties":{"allow":{"type":"boolean","title":"Allow","default":true},"n":{"type":"number","minimum":1.0}},"required":["allow"]},"x":1e3}"#,
);
/// Another one.
pub const SECOND_FORM: Question = (
    "elicitation/create",
    r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{"why":{"type":"string"}}}}"#,
);
/// The answers a harness may give.
pub const ACCEPT: &str = r#"{"action":"accept","content":{"allow":true,"n":1.0}}"#;
pub const DECLINE: &str = r#"{"action":"decline"}"#;
pub const CANCEL: &str = r#"{"action":"cancel"}"#;

/// An endpoint whose tool `ask` puts those questions one after the other, and in the end tells its argument
/// `who` and what it was answered.
pub fn asking(era: Era, questions: &[Question]) -> EndpointBuilder {
    asking_by(era, "tools/call", questions)
}

/// The same for another method.
pub fn asking_by(era: Era, method: &str, questions: &[Question]) -> EndpointBuilder {
    let questions: Arc<[Question]> = questions.into();
    Endpoint::era(era).on(method, move |call| match era {
        Era::Legacy => Reply::sse(ask_by_request(call.clone(), questions.clone(), Vec::new())),
        Era::Modern => ask_by_result(call, &questions),
    })
}

fn told(era: Era, call: &Recorded, answers: &[Value]) -> String {
    let told = json!({ "who": call.param("arguments")["who"], "answers": answers }).to_string();
    let told = Value::from(told);
    let members = match call.method() {
        "prompts/get" => {
            format!(r#""messages":[{{"role":"user","content":{{"type":"text","text":{told}}}}}]"#)
        }
        "resources/read" => {
            let contents = format!(r#""contents":[{{"uri":"memo://one","text":{told}}}]"#);
            return cacheable(era, &contents);
        }
        _ => format!(r#""content":[{{"type":"text","text":{told}}}]"#),
    };
    complete(era, &members)
}

fn ask_by_request(call: Recorded, questions: Arc<[Question]>, answers: Vec<Value>) -> Script {
    let Some((method, params)) = questions.get(answers.len()) else {
        return Script::new().result(told(Era::Legacy, &call, &answers));
    };
    let id = Value::from(format!("q{}-{}", answers.len(), call.json["id"])).to_string();
    Script::new().request(&id, method, params).posted(&id, move |response| {
        let answer = response.get("result").unwrap_or(&response["error"]).clone();
        ask_by_request(call, questions, [answers, vec![answer]].concat())
    })
}

fn ask_by_result(call: &Recorded, questions: &[Question]) -> Reply {
    // the answers so far are the state; what it looks like is nobody's business
    let state = call.param("requestState");
    let mut answers: Vec<Value> =
        state.as_str().map_or_else(Vec::new, |state| serde_json::from_str(state).unwrap());
    if !state.is_null() {
        let responses = call.param("inputResponses").as_object().unwrap();
        assert_eq!(responses.len(), 1, "the answers of the last round alone");
        answers.push(responses[&format!("q{}", answers.len())].clone());
    }
    let Some((method, params)) = questions.get(answers.len()) else {
        return Reply::result(told(Era::Modern, call, &answers));
    };
    let key = format!("q{}", answers.len());
    let state = Value::from(Value::from(answers).to_string());
    Reply::result(format!(
        r#"{{"resultType":"input_required","requestState":{state},"inputRequests":{{"{key}":{{"method":"{method}","params":{params}}}}}}}"#
    ))
}

/// What the endpoint told in the end.
pub fn told_by(answer: &Answer) -> Value {
    let result = answer.result();
    let text = [
        &result["content"][0]["text"],
        &result["messages"][0]["content"]["text"],
        &result["contents"][0]["text"],
    ];
    let text = text.into_iter().find_map(Value::as_str).unwrap_or_else(|| panic!("{}", answer.text()));
    serde_json::from_str(text).unwrap()
}

/// A question as it reached the harness, and what an answer to it has to name.
pub struct Asked {
    /// Method and params.
    pub question: Value,
    /// Legacy: the id of the request. Modern: key and state of the result.
    handle: Handle,
}

enum Handle {
    Request(String),
    Result { key: String, state: Option<Value> },
}

impl Asked {
    /// The id of the request that it came in (legacy).
    pub fn request_id(&self) -> &str {
        match &self.handle {
            Handle::Request(id) => id,
            Handle::Result { .. } => panic!("a modern question has no id"),
        }
    }

    /// The `requestState` of the result that it came in (modern).
    pub fn state(&self) -> &Value {
        match &self.handle {
            Handle::Result { state: Some(state), .. } => state,
            _ => panic!("no requestState"),
        }
    }
}

/// A request that may be answered by questions.
#[derive(Clone, Copy)]
pub struct Asker {
    /// The harness's era.
    pub era: Era,
    /// `tools/call` or another one.
    pub method: &'static str,
    /// The members of its params, without the braces.
    pub members: &'static str,
}

impl Asker {
    /// A call of `ask`.
    pub fn tool(era: Era) -> Self {
        Self { era, method: "tools/call", members: r#""name":"ask","arguments":{}"# }
    }

    /// Sends the request.
    pub async fn start(self, harness: &mut Harness) -> u64 {
        harness.request(self.method, &format!("{{{}}}", self.members)).await
    }

    /// Waits for the question that the request leads to.
    pub async fn question(self, harness: &mut Harness, id: u64) -> Asked {
        if self.era == Era::Legacy {
            let request = harness.next_request().await;
            assert!(request["id"].as_str().unwrap().starts_with("mcp-hasp:"), "{request}");
            let question = json!({ "method": request["method"], "params": request["params"] });
            return Asked { question, handle: Handle::Request(request["id"].to_string()) };
        }
        let answer = harness.answer(id).await;
        let asked = |line: &Value| line["method"].is_string() && line.get("id").is_some();
        assert!(!harness.lines().iter().any(asked), "a modern harness gets no requests");
        let result = answer.result();
        assert_eq!(result["resultType"], "input_required", "{result}");
        let requests = result["inputRequests"].as_object().unwrap();
        assert_eq!(requests.len(), 1, "{result}");
        let (key, question) = requests.iter().next().unwrap();
        assert_eq!(question.as_object().unwrap().keys().collect::<Vec<_>>(), ["method", "params"]);
        let handle = Handle::Result { key: key.clone(), state: result.get("requestState").cloned() };
        Asked { question: question.clone(), handle }
    }

    /// Answers a question; what to wait for then is the request with the id given back.
    pub async fn reply(self, harness: &mut Harness, id: u64, asked: &Asked, reply: &str) -> u64 {
        match &asked.handle {
            Handle::Request(request) => {
                harness.reply(request, reply).await;
                id
            }
            Handle::Result { key, state } => {
                let state =
                    state.as_ref().map_or_else(String::new, |state| format!(r#","requestState":{state}"#));
                let retry = format!(r#"{{{},"inputResponses":{{"{key}":{reply}}}{state}}}"#, self.members);
                harness.request(self.method, &retry).await
            }
        }
    }

    /// The whole conversation: the questions as they came, and the last answer.
    pub async fn converse(self, harness: &mut Harness, replies: &[&str]) -> (Vec<Value>, Answer) {
        let mut id = self.start(harness).await;
        let mut questions = Vec::new();
        for reply in replies {
            let asked = self.question(harness, id).await;
            id = self.reply(harness, id, &asked, reply).await;
            questions.push(asked.question);
        }
        (questions, harness.answer(id).await)
    }
}

/// A question as the endpoint put it.
pub fn as_asked((method, params): Question) -> Value {
    json!({ "method": method, "params": serde_json::from_str::<Value>(params).unwrap() })
}
