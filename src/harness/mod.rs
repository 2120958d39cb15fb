//! The stdio side: lines in, lines out, and what each era expects of them.

pub mod legacy;
pub mod modern;
pub mod questions;
pub mod stdin;
pub mod stdout;

use crate::surface::Observed;
use crate::wire::meta::Edit;
use crate::wire::{Era, Object, Payload};
use bytes::Bytes;

pub use legacy::LegacySession;
pub use questions::Questions;
pub use stdin::{Line, Stdin};
pub use stdout::Stdout;

/// The envelope of a result.
pub fn result_line(id: &str, result: Payload) -> Payload {
    envelope(id, "result", result)
}

/// The envelope of an error.
pub fn error_line(id: &str, error: Payload) -> Payload {
    envelope(id, "error", error)
}

fn envelope(id: &str, member: &str, value: Payload) -> Payload {
    let mut head = String::with_capacity(id.len() + member.len() + 32);
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, ",\"", member, "\":"] {
        head.push_str(part);
    }
    let mut line = Payload::from(head);
    line.append(value);
    line.push(Bytes::from_static(b"}\n"));
    line
}

/// The envelope of a notification.
pub fn notification_line(method: &str, params: Payload) -> Payload {
    let mut line = Payload::from(format!(
        r#"{{"jsonrpc":"2.0","method":{},"params":"#,
        crate::wire::json::quote(method)
    ));
    line.append(params);
    line.push(Bytes::from_static(b"}\n"));
    line
}

/// The endpoint's capabilities as the harness may see them: what this program does not keep is not announced,
/// and nothing is announced that lets an endpoint talk into a session.
fn capabilities(opening: &Object<'_>) -> Option<Payload> {
    let member = opening.member("capabilities")?;
    let object = Object::read(member.value).ok()?;
    let base = Bytes::copy_from_slice(member.value.as_bytes());
    let mut edit = Edit::new(&object);
    edit.remove("tasks");
    for list in ["tools", "prompts"] {
        // The lists are those read at start: their changes are looked into, never announced.
        if let Some(offered) =
            object.object(list).ok().flatten().filter(|offered| offered.get("listChanged") == Some("true"))
        {
            let mut inner = Edit::new(&offered);
            inner.set("listChanged", "false");
            edit.set(list, inner.apply(&Bytes::copy_from_slice(offered.text().as_bytes())));
        }
    }
    for (group, kept) in
        [("extensions", is_known_extension as fn(&str) -> bool), ("experimental", is_harmless)]
    {
        let Some(entries) = object.object(group).ok().flatten() else { continue };
        if entries.members().all(|entry| kept(&entry.key)) {
            continue;
        }
        let mut inner = Edit::new(&entries);
        for entry in entries.members().filter(|entry| !kept(&entry.key)) {
            inner.remove(&entry.key);
        }
        edit.set(group, inner.apply(&Bytes::copy_from_slice(entries.text().as_bytes())));
    }
    Some(edit.apply(&base))
}

fn is_known_extension(key: &str) -> bool {
    key == "io.modelcontextprotocol/skills"
}

/// A channel writes into the model's context, and its permission relay approves tools (Claude Code "Channels"):
/// only this program may ever declare one.
fn is_harmless(key: &str) -> bool {
    !key.starts_with("claude/")
}

/// Who the endpoint says it is.
fn server_info<'a>(opening: &Object<'a>) -> Option<&'a str> {
    let in_meta =
        opening.object("_meta").ok().flatten().and_then(|meta| meta.get(crate::wire::meta::SERVER_INFO));
    in_meta.or_else(|| opening.get("serverInfo"))
}

/// A list read at start, in the form of an era.
pub fn list_result(observed: &Observed, kind: crate::surface::Kind, era: Era) -> Option<Payload> {
    let list = observed.list(kind)?;
    let shown = |item: &str| match era {
        Era::Legacy if kind == crate::surface::Kind::Tools => legacy::tool(item),
        _ => None,
    };
    let result = list.to_result(shown);
    if observed.era == Era::Legacy && era == Era::Legacy {
        return Some(result);
    }
    let base = Bytes::from(result.into_vec());
    let text = std::str::from_utf8(&base).ok()?;
    let object = Object::read(text).ok()?;
    if observed.era == Era::Modern && era == Era::Modern {
        let mut edit = Edit::new(&object);
        if object.get("cacheScope") != Some("\"private\"") {
            // Another authorization may be shown another list: nobody is to share this one.
            edit.set("cacheScope", "\"private\"");
        }
        return Some(edit.apply(&base));
    }
    Some(crate::wire::meta::translate_result(kind.method(), observed.era, era, &object).apply(&base))
}
