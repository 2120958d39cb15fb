//! The only code that edits a payload: members are cut, replaced and added, the rest stays as its own bytes.

use bytes::Bytes;

use super::Era;
use super::json::{Object, quote};
use super::method;
use super::payload::{Payload, Splice};

/// `_meta` key: the protocol revision of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key: what the client of a request can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key: who the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key: from which severity on log messages are wanted.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// `_meta` key of results: who the server is.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key: the listen request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The modern revision as a JSON string.
const MODERN_VERSION_JSON: &str = "\"2026-07-28\"";
/// The prefix that the protocol keeps to itself.
const OWN_PREFIX: &str = "io.modelcontextprotocol/";

/// What this program says of itself, to either side.
pub const OWN_INFO: &str = concat!(r#"{"name":"mcp-hasp","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// Changes to the members of one object.
#[derive(Debug)]
pub struct Edit<'o, 'a> {
    object: &'o Object<'a>,
    changes: Vec<(usize, Option<Payload>)>,
    added: Vec<(String, Payload)>,
}

impl<'o, 'a> Edit<'o, 'a> {
    /// No change yet.
    pub fn new(object: &'o Object<'a>) -> Self {
        Edit { object, changes: Vec::new(), added: Vec::new() }
    }

    /// Takes a member out, if it is there.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.change(key, None);
        self
    }

    /// Gives a member a value: in its place, or at the end.
    pub fn set(&mut self, key: &str, value: impl Into<Payload>) -> &mut Self {
        let value = value.into();
        if self.object.member(key).is_some() {
            self.change(key, Some(value));
        } else {
            self.added.push((key.to_owned(), value));
        }
        self
    }

    /// Gives a member a value unless it has one.
    pub fn set_if_absent(&mut self, key: &str, value: impl Into<Payload>) -> &mut Self {
        if self.object.member(key).is_none() {
            self.added.push((key.to_owned(), value.into()));
        }
        self
    }

    fn change(&mut self, key: &str, value: Option<Payload>) {
        if let Some(at) = self.object.members().position(|member| member.key == key) {
            self.changes.retain(|(changed, _)| *changed != at);
            self.changes.push((at, value));
        }
    }

    /// The edited text. `base` holds the bytes that the object was read from.
    pub fn apply(self, base: &Bytes) -> Payload {
        self.into_splice().apply(base)
    }

    /// The cuts and insertions that the changes amount to.
    pub fn into_splice(self) -> Splice {
        let members: Vec<_> = self.object.members().collect();
        let removed =
            |at: usize| self.changes.iter().any(|(changed, value)| *changed == at && value.is_none());
        let mut splice = Splice::new();
        let mut kept_before = false;
        for (at, member) in members.iter().enumerate() {
            if !removed(at) {
                kept_before = true;
                continue;
            }
            // With the comma before it; at the front, with the one after it.
            let range = match (
                kept_before,
                at.checked_sub(1).and_then(|before| members.get(before)),
                members.get(at + 1),
            ) {
                (true, Some(before), _) => before.span.end..member.span.end,
                (_, _, Some(after)) => member.span.start..after.span.start,
                _ => member.span.clone(),
            };
            splice.replace(range, Payload::new());
        }
        let end = members
            .last()
            .map_or_else(|| self.object.text().find('{').map_or(0, |at| at + 1), |last| last.span.end);
        let mut comma = kept_before;
        for (key, value) in self.added {
            let mut member = Payload::from(format!("{}{}:", if comma { "," } else { "" }, quote(&key)));
            member.append(value);
            splice.replace(end..end, member);
            comma = true;
        }
        for (at, value) in self.changes {
            if let (Some(member), Some(value)) = (members.get(at), value) {
                splice.replace(member.value_span.clone(), value);
            }
        }
        splice
    }
}

/// What is written into `_meta` of a request to the endpoint.
#[derive(Clone, Debug)]
pub struct Stamp<'s> {
    /// The endpoint's era.
    pub era: Era,
    /// The capabilities declared with this request, a JSON object.
    pub capabilities: &'s str,
    /// From which severity on log messages are wanted, a JSON string.
    pub log_level: Option<&'s str>,
    /// The progress token, a JSON string or integer.
    pub progress_token: Option<&'s str>,
}

/// Writes `params` for the endpoint: the harness's own members as they are, `_meta` with our envelope.
/// Members named in `without` stay behind.
pub fn stamp_params(params: &Object<'_>, meta: &Object<'_>, without: &[&str], stamp: &Stamp<'_>) -> String {
    let mut out = String::with_capacity(params.text().len() + 384);
    out.push('{');
    let mut had_meta = false;
    for member in params.members() {
        if member.key == "_meta" {
            had_meta = true;
        } else if !without.contains(&member.key.as_ref()) {
            comma(&mut out);
            out.push_str(params.text().get(member.span).unwrap_or_default());
        }
    }
    let before_meta = out.len();
    comma(&mut out);
    out.push_str("\"_meta\":{");
    let empty_meta = out.len();
    for member in meta.members() {
        if !member.key.starts_with(OWN_PREFIX) && member.key != "progressToken" {
            comma(&mut out);
            out.push_str(meta.text().get(member.span).unwrap_or_default());
        }
    }
    let mut add = |key: &str, value: &str| {
        comma(&mut out);
        out.push('"');
        out.push_str(key);
        out.push_str("\":");
        out.push_str(value);
    };
    if let Some(token) = stamp.progress_token {
        add("progressToken", token);
    }
    if stamp.era == Era::Modern {
        add(PROTOCOL_VERSION, MODERN_VERSION_JSON);
        add(CLIENT_INFO, OWN_INFO);
        add(CLIENT_CAPABILITIES, stamp.capabilities);
        if let Some(level) = stamp.log_level {
            add(LOG_LEVEL, level);
        }
    }
    if out.len() == empty_meta && !had_meta {
        out.truncate(before_meta);
    } else {
        out.push('}');
    }
    out.push('}');
    out
}

fn comma(out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
}

/// What has to change in a result of one era to have the form of another. The same era passes untouched.
pub fn translate_result(method: &str, from: Era, to: Era, result: &Object<'_>) -> Splice {
    let mut edit = Edit::new(result);
    match (from, to) {
        (Era::Modern, Era::Modern) | (Era::Legacy, Era::Legacy) => return Splice::new(),
        (Era::Modern, Era::Legacy) => {
            edit.remove("resultType");
            if method::cacheable(method) {
                edit.remove("ttlMs").remove("cacheScope");
            }
            // Before 2026-07-28 structuredContent is an object (MCP 2025-11-25 "Tools").
            if method == "tools/call"
                && result.get("structuredContent").is_some_and(|value| !value.starts_with('{'))
            {
                edit.remove("structuredContent");
            }
        }
        (Era::Legacy, Era::Modern) => {
            edit.set("resultType", "\"complete\"");
            if method::cacheable(method) {
                edit.set_if_absent("ttlMs", "0").set_if_absent("cacheScope", "\"private\"");
            }
        }
    }
    edit.into_splice()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &'static str, change: impl Fn(&mut Edit<'_, '_>)) -> String {
        let object = Object::read(text).unwrap();
        let mut edit = Edit::new(&object);
        change(&mut edit);
        String::from_utf8(edit.apply(&Bytes::from_static(text.as_bytes())).into_vec()).unwrap()
    }

    #[test]
    fn members_are_cut_with_one_comma_wherever_they_stand() {
        let text = r#"{ "a":1, "b" : 2 ,"c":3 }"#;
        assert_eq!(
            edited(text, |e| {
                e.remove("a");
            }),
            r#"{ "b" : 2 ,"c":3 }"#
        );
        assert_eq!(
            edited(text, |e| {
                e.remove("b");
            }),
            r#"{ "a":1 ,"c":3 }"#
        );
        assert_eq!(
            edited(text, |e| {
                e.remove("c");
            }),
            r#"{ "a":1, "b" : 2 }"#
        );
        assert_eq!(
            edited(text, |e| {
                e.remove("a").remove("b");
            }),
            r#"{ "c":3 }"#
        );
        assert_eq!(
            edited(text, |e| {
                e.remove("b").remove("c");
            }),
            r#"{ "a":1 }"#
        );
        assert_eq!(
            edited(text, |e| {
                e.remove("a").remove("b").remove("c");
            }),
            r#"{  }"#
        );
        assert_eq!(
            edited(text, |e| {
                e.remove("z");
            }),
            text
        );
    }

    #[test]
    fn members_are_added_at_the_end_and_replaced_in_place() {
        assert_eq!(
            edited("{}", |e| {
                e.set("x", "1").set("y", "2");
            }),
            r#"{"x":1,"y":2}"#
        );
        assert_eq!(
            edited(r#"{"a":1}"#, |e| {
                e.remove("a").set("x", "1");
            }),
            r#"{"x":1}"#
        );
        assert_eq!(
            edited(r#"{"a":1,"b":2}"#, |e| {
                e.remove("b").set("x", "1").set("a", "9");
            }),
            r#"{"a":9,"x":1}"#
        );
    }

    #[test]
    fn a_request_keeps_its_members_and_gets_our_envelope() {
        let params = Object::read(
            r#"{"name":"t","arguments":{"n":1.0},"task":{},"_meta":{"progressToken":0,"com.x/y":1e3,"io.modelcontextprotocol/clientInfo":{}}}"#,
        )
        .unwrap();
        let meta = params.object("_meta").unwrap().unwrap();
        let stamp =
            Stamp { era: Era::Legacy, capabilities: "{}", log_level: None, progress_token: Some("0") };
        assert_eq!(
            stamp_params(&params, &meta, &["task"], &stamp),
            r#"{"name":"t","arguments":{"n":1.0},"_meta":{"com.x/y":1e3,"progressToken":0}}"#
        );
        let stamp = Stamp { era: Era::Modern, progress_token: None, ..stamp };
        let text = stamp_params(&Object::default(), &Object::default(), &[], &stamp);
        let read = Object::read(&text).unwrap();
        let meta = read.object("_meta").unwrap().unwrap();
        assert_eq!(meta.string(PROTOCOL_VERSION).unwrap(), crate::wire::MODERN_VERSION);
        assert_eq!(meta.get(CLIENT_CAPABILITIES), Some("{}"));
        let stamp = Stamp { era: Era::Legacy, ..stamp };
        assert_eq!(stamp_params(&Object::default(), &Object::default(), &[], &stamp), "{}");
    }

    #[test]
    fn results_change_era_and_come_back() {
        let modern = r#"{"resultType":"complete","tools":[ 1e3 ],"ttlMs":5,"cacheScope":"public","x":null}"#;
        let changed = |text: &str, from, to| {
            let splice = translate_result("tools/list", from, to, &Object::read(text).unwrap());
            String::from_utf8(splice.apply(&Bytes::copy_from_slice(text.as_bytes())).into_vec()).unwrap()
        };
        let legacy = changed(modern, Era::Modern, Era::Legacy);
        assert_eq!(legacy, r#"{"tools":[ 1e3 ],"x":null}"#);
        assert_eq!(
            changed(&legacy, Era::Legacy, Era::Modern),
            r#"{"tools":[ 1e3 ],"x":null,"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#
        );
    }
}
