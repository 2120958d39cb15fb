//! `--channel`: what wakes a session, and that nothing else does. The harness checks every event of every test
//! (`support/channel.rs`): no URI, token or observation, and nothing before `notifications/initialized`.

mod declared;
mod gaps;
mod hostile;
mod statuses;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::{
    opened::cacheable,
    subscriptions::update,
    support::{CHANNEL, Endpoint, EndpointBuilder, Era, Harness, PRIVATE, Recorded, Reply},
};

const LIST_CHANGED: &str = "notifications/resources/list_changed";
const CAPABILITIES: &str = r#"{"tools":{},"resources":{"subscribe":true,"listChanged":true}}"#;

/// A status as a server of games has it: with much that is nobody's business.
fn status(members: &Value) -> Value {
    let mut status = json!({"observation": {"enemy": "observed"}, "log": ["observed"], "seatToken": PRIVATE});
    status.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    status
}

fn uri(seat: u32) -> String {
    format!("playerthree://seat/{PRIVATE}-{seat}")
}

/// One resource: its URI, its name, its text.
type Seat = (String, String, String);

/// The statuses that an endpoint has.
#[derive(Clone, Default)]
struct Seats(Arc<Mutex<Vec<Seat>>>);

impl Seats {
    /// Seats a role, or changes its status.
    fn put(&self, seat: u32, role: &str, members: &Value) {
        self.put_text(&uri(seat), role, &status(members).to_string());
    }

    fn put_text(&self, uri: &str, name: &str, text: &str) {
        let mut all = self.0.lock().unwrap();
        all.retain(|(known, ..)| known != uri);
        all.push((uri.to_owned(), name.to_owned(), text.to_owned()));
    }

    fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn list(&self, era: Era) -> Reply {
        let all = self.0.lock().unwrap();
        let list: Vec<_> = all.iter().map(|(uri, name, _)| json!({"uri": uri, "name": name})).collect();
        Reply::result(cacheable(era, &format!(r#""resources":{}"#, json!(list))))
    }

    fn read(&self, era: Era, request: &Recorded) -> Reply {
        let all = self.0.lock().unwrap();
        let Some((uri, _, text)) = all.iter().find(|(uri, ..)| uri == request.subject()) else {
            return Reply::error_code(if era == Era::Modern { -32602 } else { -32002 }, "unknown resource");
        };
        let content = json!({"uri": uri, "mimeType": "application/json", "text": text});
        Reply::result(cacheable(era, &format!(r#""contents":[{content}]"#)))
    }

    /// An endpoint that has them.
    fn endpoint(&self, era: Era) -> EndpointBuilder {
        let (listed, read) = (self.clone(), self.clone());
        Endpoint::era(era)
            .capabilities(CAPABILITIES)
            .on("resources/list", move |_| listed.list(era))
            .on("resources/read", move |request| read.read(era, request))
    }
}

/// The program with `--channel`, opened as Claude Code opens it.
async fn listening(endpoint: &Endpoint, args: &[&str]) -> Harness {
    let mut harness = Harness::launch(&endpoint.url()).arg("--channel").args(args).start();
    let opening = harness.open(Era::Legacy, "{}").await;
    assert!(!opening.is_error(), "{}", opening.text());
    harness
}

/// A runner in the lobby, whose status was read.
async fn in_the_lobby(era: Era) -> (Harness, Endpoint, Seats) {
    in_the_lobby_of(era, |endpoint| endpoint).await
}

async fn in_the_lobby_of(
    era: Era,
    change: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
) -> (Harness, Endpoint, Seats) {
    let seats = Seats::default();
    seats.put(1, "runner", &json!({"phase": "lobby"}));
    let endpoint = change(seats.endpoint(era)).start().await;
    let harness = listening(&endpoint, &[]).await;
    endpoint.arrived("resources/read", 0).await;
    (harness, endpoint, seats)
}

/// The next event: its `meta`.
async fn next_event(harness: &mut Harness) -> Value {
    harness.next_notification(CHANNEL).await["params"]["meta"].clone()
}

/// The next event: what it says.
async fn next_sentence(harness: &mut Harness) -> String {
    harness.next_notification(CHANNEL).await["params"]["content"].as_str().unwrap().to_owned()
}

/// Every line of that method so far.
fn said(harness: &Harness, method: &str) -> Vec<Value> {
    harness.lines().into_iter().filter(|line| line["method"] == method).collect()
}

/// The program has read that status since; what it had to say of it comes before anything later.
async fn read_again(endpoint: &Endpoint, era: Era, seat: u32) {
    let before = endpoint.requests_of("resources/read").len();
    update(endpoint, era, &uri(seat)).await;
    endpoint.arrived("resources/read", before).await;
}

/// The result of a tool.
fn tool_result(era: Era, object: &Value) -> Reply {
    let text = Value::from(object.to_string());
    let members = format!(r#""content":[{{"type":"text","text":{text}}}],"structuredContent":{object}"#);
    Reply::result(crate::opened::complete(era, &members))
}
