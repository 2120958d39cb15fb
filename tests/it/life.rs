//! The life of the process: it starts, bears load, and leaves when it should.

mod leaving;
mod load;
mod secrets;
mod start;

use crate::support::{Endpoint, EndpointBuilder, Era, Harness, Launch, Reply};

/// Where in its life a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It runs, and nothing was said to it.
    Started,
    /// The endpoint does not answer the opening.
    Opening,
    /// It has served a call, and nothing goes on.
    Idle,
    /// A call is in flight.
    Calling,
    /// A subscription is open.
    Listening,
}

/// A program in that phase, with a session at the endpoint.
async fn in_phase(
    phase: Phase,
    harness_era: Era,
    endpoint_era: Era,
    launch: impl FnOnce(Launch) -> Launch,
) -> (Endpoint, Harness) {
    let endpoint = endpoint_for(phase, endpoint_era).sessions().start().await;
    let mut harness = launch(Harness::launch(&endpoint.url())).start();
    endpoint.arrived("server/discover", 0).await;
    match phase {
        Phase::Started => {}
        Phase::Opening => {
            let method = if harness_era == Era::Modern { "server/discover" } else { "initialize" };
            let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
            if harness_era == Era::Modern {
                harness.speak_modern("{}");
            }
            harness.request(method, if harness_era == Era::Modern { "{}" } else { params }).await;
            let hung = if endpoint_era == Era::Modern { "server/discover" } else { "initialize" };
            endpoint.arrived(hung, 0).await;
        }
        Phase::Idle => {
            harness.open(harness_era, "{}").await.result();
            harness.call("echo", r#"{"text":"hello"}"#).await.result();
        }
        Phase::Calling => {
            harness.open(harness_era, "{}").await.result();
            harness.start_call("sleep", "{}").await;
            endpoint.arrived("tools/call", 0).await;
        }
        Phase::Listening => {
            harness.open(harness_era, "{}").await.result();
            subscribe(&mut harness, harness_era).await;
        }
    }
    (endpoint, harness)
}

fn endpoint_for(phase: Phase, era: Era) -> EndpointBuilder {
    match (phase, era) {
        (Phase::Opening, Era::Modern) => Endpoint::modern().on("server/discover", |_| Reply::hang()),
        (Phase::Opening, Era::Legacy) => Endpoint::legacy().on("initialize", |_| Reply::hang()),
        _ => Endpoint::era(era),
    }
}

async fn subscribe(harness: &mut Harness, era: Era) {
    if era == Era::Legacy {
        harness.ask("resources/subscribe", r#"{"uri":"memo://one"}"#).await.result();
        return;
    }
    let filter = r#"{"notifications":{"resourceSubscriptions":["memo://one"]}}"#;
    harness.request("subscriptions/listen", filter).await;
    harness.next_notification("notifications/subscriptions/acknowledged").await;
}
