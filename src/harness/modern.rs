//! A harness of 2026-07-28: almost nothing to translate.

use bytes::Bytes;

use super::{capabilities, server_info};
use crate::surface::Observed;
use crate::wire::meta::{self, Edit};
use crate::wire::{Client, Era, MODERN_VERSION, Object, Payload, code};

/// Why a request with a modern claim is refused: code, message, `data`.
pub type BadClaim = (i64, String, Option<String>);

/// Reads the claim in a request's `_meta`. `None` when there is none.
pub fn claim(meta: &Object<'_>) -> Option<Result<Client, BadClaim>> {
    meta.get(meta::PROTOCOL_VERSION)?;
    let Some(version) = meta.string(meta::PROTOCOL_VERSION) else {
        return Some(Err((
            code::INVALID_PARAMS,
            format!("_meta {} must be a string", meta::PROTOCOL_VERSION),
            None,
        )));
    };
    if version != MODERN_VERSION {
        let requested = crate::wire::json::quote(&version);
        let data = format!(r#"{{"supported":["{MODERN_VERSION}"],"requested":{requested}}}"#);
        return Some(Err((code::UNSUPPORTED_VERSION, "unsupported protocol version".into(), Some(data))));
    }
    Some(Client::of_meta(meta).ok_or_else(|| {
        (code::INVALID_PARAMS, format!("_meta {} is missing or no object", meta::CLIENT_CAPABILITIES), None)
    }))
}

/// The answer to `server/discover`, from what the endpoint said at start.
pub fn discover_result(observed: &Observed) -> Payload {
    let text = std::str::from_utf8(&observed.opening).unwrap_or("{}");
    let opening = Object::read(text).unwrap_or_default();
    let mut edit = Edit::new(&opening);
    if let Some(capabilities) = capabilities(&opening) {
        edit.set("capabilities", capabilities);
    }
    let versions = format!(r#"["{MODERN_VERSION}"]"#);
    if opening.get("supportedVersions") != Some(versions.as_str()) {
        edit.set("supportedVersions", versions);
    }
    if observed.era == Era::Legacy {
        edit.set("resultType", "\"complete\"").set("ttlMs", "0").set("cacheScope", "\"private\"");
        edit.remove("protocolVersion").remove("serverInfo");
        if let Some(info) = server_info(&opening) {
            let meta = opening.object("_meta").ok().flatten().unwrap_or_default();
            let mut inner = Edit::new(&meta);
            inner.set(meta::SERVER_INFO, info.to_owned());
            edit.set("_meta", inner.apply(&Bytes::copy_from_slice(meta.text().as_bytes())));
        }
    } else {
        edit.set_if_absent("ttlMs", "0").set_if_absent("resultType", "\"complete\"");
        if opening.get("cacheScope") != Some("\"private\"") {
            // Another authorization may be shown another surface: nobody is to share this one.
            edit.set("cacheScope", "\"private\"");
        }
    }
    edit.apply(&observed.opening)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(era: Era, opening: &'static str) -> String {
        let observed = Observed::new(era, Bytes::from_static(opening.as_bytes()), []);
        String::from_utf8(discover_result(&observed).into_vec()).unwrap()
    }

    #[test]
    fn a_modern_opening_passes_as_it_is() {
        let same = r#"{"resultType":"complete", "supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":false}},"x":1.0,"ttlMs":5,"cacheScope":"private"}"#;
        assert_eq!(result(Era::Modern, same), same);
    }

    #[test]
    fn what_this_program_does_not_keep_is_not_announced() {
        let told = result(
            Era::Modern,
            r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true},"tasks":{},"extensions":{"com.x/y":{},"io.modelcontextprotocol/skills":{}},"experimental":{"claude/channel":{},"bench/opaque":{"a":1.0}}},"ttlMs":0,"cacheScope":"public"}"#,
        );
        assert_eq!(
            told,
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":false},"extensions":{"io.modelcontextprotocol/skills":{}},"experimental":{"bench/opaque":{"a":1.0}}},"ttlMs":0,"cacheScope":"private","resultType":"complete"}"#
        );
    }

    #[test]
    fn a_legacy_opening_becomes_a_modern_one() {
        assert_eq!(
            result(
                Era::Legacy,
                r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s"},"instructions":"hi"}"#
            ),
            r#"{"capabilities":{},"instructions":"hi","supportedVersions":["2026-07-28"],"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
        );
    }

    #[test]
    fn claims_are_checked() {
        let read = |text: &'static str| claim(&Object::read(text).unwrap());
        assert!(read("{}").is_none());
        let code = |text| read(text).unwrap().unwrap_err().0;
        assert_eq!(code(r#"{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}"#), -32022);
        assert_eq!(code(r#"{"io.modelcontextprotocol/protocolVersion":7}"#), -32602);
        assert_eq!(code(r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#), -32602);
        assert!(read(r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#).unwrap().is_ok());
    }
}
