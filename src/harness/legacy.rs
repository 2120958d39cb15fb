//! A harness of the `initialize` era: its session, and the forms it expects.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use super::{capabilities, server_info};
use crate::channel;
use crate::limits::Allow;
use crate::surface::Observed;
use crate::wire::meta::{self, Edit};
use crate::wire::{Client, Declared, Era, LEGACY_VERSIONS, Object, Payload, json};

/// What was agreed with a legacy harness.
#[derive(Debug)]
pub struct LegacySession {
    /// The revision both speak.
    pub version: &'static str,
    /// What the harness can do, as far as the user allows it.
    pub declared: Arc<Declared>,
    initialized: watch::Sender<bool>,
    log_level: Mutex<Option<String>>,
}

impl LegacySession {
    /// Reads the parameters of `initialize`. A revision we do not know is answered with our newest legacy one
    /// (MCP 2025-11-25 "Version Negotiation").
    pub fn open(params: &Object<'_>, allow: Allow) -> Self {
        let asked = params.string("protocolVersion").unwrap_or_default();
        let [newest, ..] = LEGACY_VERSIONS;
        let version = LEGACY_VERSIONS.into_iter().find(|known| *known == asked).unwrap_or(newest);
        let mut client = params
            .object("capabilities")
            .ok()
            .flatten()
            .map(|found| Client::read(&found))
            .unwrap_or_default();
        // Sending the user to a URL came with 2025-11-25.
        client.elicitation_url &= version == newest;
        let declared = Arc::new(Declared::new(client.limited(allow.sampling, allow.roots)));
        LegacySession {
            version,
            declared,
            initialized: watch::Sender::new(false),
            log_level: Mutex::default(),
        }
    }

    /// The harness said `notifications/initialized`.
    pub fn set_initialized(&self) {
        self.initialized.send_replace(true);
    }

    /// Waits until the harness takes requests (MCP 2025-11-25 "Initialization").
    pub async fn initialized(&self) {
        // The sender is ours, so waiting cannot fail.
        let _ = self.initialized.subscribe().wait_for(|yes| *yes).await;
    }

    /// The level set by `logging/setLevel`, a JSON string.
    pub fn log_level(&self) -> Option<String> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the level, a JSON string.
    pub fn set_log_level(&self, level: String) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Whether arrays of messages have to be taken (MCP 2025-03-26 alone).
    pub fn takes_batches(&self) -> bool {
        self.version == "2025-03-26"
    }
}

/// The answer to `initialize`, from what the endpoint said at start, and with `channel` what we say of the wake channel.
pub fn initialize_result(observed: &Observed, version: &str, channel: bool) -> Payload {
    let text = std::str::from_utf8(&observed.opening).unwrap_or("{}");
    let opening = Object::read(text).unwrap_or_default();
    let mut edit = Edit::new(&opening);
    let version = format!("\"{version}\"");
    if opening.get("protocolVersion") != Some(version.as_str()) {
        edit.set("protocolVersion", version);
    }
    match capabilities(&opening) {
        Some(capabilities) if channel => edit.set("capabilities", with_channel(capabilities)),
        Some(capabilities) => edit.set("capabilities", capabilities),
        None if channel => edit.set("capabilities", with_channel("{}".to_owned().into())),
        None => edit.set("capabilities", "{}"),
    };
    if channel {
        edit.set("instructions", instructions(opening.get("instructions")));
    }
    if observed.era == Era::Modern {
        edit.remove("resultType").remove("supportedVersions").remove("ttlMs").remove("cacheScope");
    }
    if opening.get("serverInfo").is_none() {
        edit.set(
            "serverInfo",
            server_info(&opening).map_or_else(|| meta::OWN_INFO.to_owned(), str::to_owned),
        );
    }
    edit.apply(&observed.opening)
}

/// Declares the wake channel (Claude Code "Channels reference"). This program alone may: of an endpoint it is not passed on.
fn with_channel(capabilities: Payload) -> Payload {
    let base = Bytes::from(capabilities.into_vec());
    let text = std::str::from_utf8(&base).unwrap_or("{}");
    let object = Object::read(text).unwrap_or_default();
    let ours = format!("{}:{{}}", json::quote(channel::CAPABILITY));
    let mut edit = Edit::new(&object);
    match object.object("experimental").ok().flatten().filter(|others| !others.is_empty()) {
        Some(others) => {
            let rest = others.text().trim_start().strip_prefix('{').unwrap_or("}");
            edit.set("experimental", format!("{{{ours},{rest}"));
        }
        None => {
            edit.set("experimental", format!("{{{ours}}}"));
        }
    }
    edit.apply(&base)
}

/// The endpoint's own instructions as they came, and ours behind them.
fn instructions(own: Option<&str>) -> String {
    let ours = json::quote(channel::INSTRUCTIONS);
    match own.and_then(|own| own.strip_prefix('"')?.strip_suffix('"')).filter(|own| !own.is_empty()) {
        Some(own) => format!("\"{own}\\n\\n{}", ours.strip_prefix('"').unwrap_or_default()),
        None => ours,
    }
}

/// A tool as a legacy harness may see it, where it differs: there an output schema describes an object
/// (MCP 2025-11-25 "Tools").
pub fn tool(item: &str) -> Option<Payload> {
    let object = Object::read(item).ok()?;
    let schema = object.get("outputSchema")?;
    let of_object =
        Object::read(schema).is_ok_and(|schema| schema.string("type").as_deref() == Some("object"));
    if of_object {
        return None;
    }
    let mut edit = Edit::new(&object);
    edit.remove("outputSchema");
    Some(edit.apply(&Bytes::copy_from_slice(item.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &'static str) -> LegacySession {
        LegacySession::open(&Object::read(text).unwrap(), Allow::default())
    }

    #[test]
    fn known_revisions_are_echoed_and_others_answered_with_the_newest() {
        for (asked, agreed) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let params = format!(r#"{{"protocolVersion":"{asked}"}}"#);
            assert_eq!(
                LegacySession::open(&Object::read(&params).unwrap(), Allow::default()).version,
                agreed
            );
        }
        assert_eq!(session("{}").version, "2025-11-25");
    }

    #[test]
    fn a_modern_opening_becomes_an_initialize_result() {
        let opening = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"hi","ttlMs":0,"cacheScope":"private","_meta":{"surfaceHash":"x","io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
        let observed = Observed::new(Era::Modern, Bytes::from_static(opening.as_bytes()), []);
        assert_eq!(
            String::from_utf8(initialize_result(&observed, "2025-06-18", false).into_vec()).unwrap(),
            r#"{"capabilities":{"tools":{}},"instructions":"hi","_meta":{"surfaceHash":"x","io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"}}"#
        );
    }

    #[test]
    fn the_channel_is_declared_beside_what_is_there() {
        let shown = |opening: &'static str| {
            let observed = Observed::new(Era::Legacy, Bytes::from_static(opening.as_bytes()), []);
            let result = initialize_result(&observed, "2025-11-25", true).into_vec();
            let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
            (result["capabilities"].to_string(), result["instructions"].as_str().unwrap().to_owned())
        };
        let (capabilities, instructions) = shown("{}");
        assert_eq!(capabilities, r#"{"experimental":{"claude/channel":{}}}"#);
        assert_eq!(instructions, channel::INSTRUCTIONS);
        let (capabilities, instructions) = shown(
            r#"{"capabilities":{"tools":{},"experimental":{"a":1,"claude/channel":{"x":1},"claude/channel/permission":{}}},"instructions":"say \"hi\""}"#,
        );
        assert_eq!(capabilities, r#"{"experimental":{"a":1,"claude/channel":{}},"tools":{}}"#);
        assert_eq!(instructions, format!("say \"hi\"\n\n{}", channel::INSTRUCTIONS));
    }

    #[test]
    fn an_output_schema_that_is_no_object_is_dropped() {
        let shown = |item| tool(item).map(|payload| String::from_utf8(payload.into_vec()).unwrap());
        assert_eq!(
            shown(r#"{"name":"a","outputSchema":{"type":"array"},"x":1}"#).unwrap(),
            r#"{"name":"a","x":1}"#
        );
        assert_eq!(shown(r#"{"name":"a","outputSchema":{"type":"object"}}"#), None);
        assert_eq!(shown(r#"{"name":"a"}"#), None);
    }
}
