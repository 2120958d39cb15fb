//! Reading the whole surface once: every list, every page.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::opening::{Patience, patiently};
use super::session::Session;
use super::trouble::Trouble;
use crate::limits::Limits;
use crate::report::{Report, visible};
use crate::surface::{Kind, List, Observed, ParameterHeaders, Skills};
use crate::wire::{Era, Object, json};

/// Reads what the endpoint offers. `opening` is the result of `server/discover` or `initialize`.
pub(super) async fn read(
    session: &Arc<Session>,
    opening: Bytes,
    limits: &Limits,
    patience: Patience,
    report: &Report,
) -> Result<Observed, Trouble> {
    let text = std::str::from_utf8(&opening).unwrap_or_default();
    let object = Object::read(text)
        .map_err(|wrong| Trouble::NotMcp(format!("its opening is unreadable: {wrong:?}")))?;
    let capabilities = object
        .object("capabilities")
        .map_err(|wrong| Trouble::NotMcp(format!("its capabilities are unreadable: {wrong:?}")))?
        .unwrap_or_default();
    let offered = |kind: Kind| match kind.capability() {
        (group, Some(extension)) => {
            capabilities.object(group).ok().flatten().is_some_and(|all| all.get(extension).is_some())
        }
        (capability, None) => capabilities.get(capability).is_some(),
    };
    let list = |kind: Kind| async move {
        match offered(kind) {
            true => read_list(session, kind, limits, patience).await.map(Some),
            false => Ok(None),
        }
    };
    let (tools, prompts, templates, skills) = tokio::join!(
        list(Kind::Tools),
        list(Kind::Prompts),
        list(Kind::ResourceTemplates),
        list(Kind::Skills)
    );
    let mut tools = tools?;
    if session.era() == Era::Modern {
        session.learn_parameter_headers(learn(tools.as_mut(), report));
    }
    let lists = [tools, prompts?, templates?, skills?].into_iter().flatten();
    let observed = Observed::new(session.era(), opening.clone(), lists);
    // Once is enough: read again, it is the same or there is worse to say.
    if patience == Patience::Start {
        warn_of_skills(&observed, report);
    }
    Ok(observed)
}

fn warn_of_skills(observed: &Observed, report: &Report) {
    for (uri, why) in observed.skills().into_iter().flat_map(Skills::refused) {
        report.warning(format!(
            "skill {} is refused: {why}; its operator must correct it",
            visible(&json::quote(uri), 120)
        ));
    }
}

async fn read_list(
    session: &Arc<Session>,
    kind: Kind,
    limits: &Limits,
    patience: Patience,
) -> Result<List, Trouble> {
    let method = kind.method();
    let mut list = List::new(kind);
    let mut seen = HashSet::new();
    let mut bytes = 0;
    let mut params = "{}".to_owned();
    for _ in 0..limits.pages {
        let result = match patiently(patience, || session.ask(method, &params)).await {
            Ok(message) => message.into_payload(),
            // Declared, but not there: some servers declare resources and know no templates.
            Err(Trouble::Refused { code, .. })
                if code == "-32601" && list.is_empty() && kind != Kind::Tools =>
            {
                return Ok(list);
            }
            Err(trouble) => return Err(trouble),
        };
        bytes += result.len();
        if bytes > limits.message_bytes {
            return Err(Trouble::TooLarge { limit: limits.message_bytes });
        }
        let cursor = next_cursor(&result);
        list.add_page(result).map_err(Trouble::NotMcp)?;
        match cursor {
            None => return Ok(list),
            Some(cursor) if !seen.insert(cursor.clone()) => {
                return Err(Trouble::NotMcp(format!(
                    "{method}: the cursor {} comes back, the list has no end",
                    visible(&cursor, 60)
                )));
            }
            Some(cursor) => params = format!(r#"{{"cursor":{}}}"#, json::quote(&cursor)),
        }
    }
    Err(Trouble::NotMcp(format!("{method}: more than {} pages", limits.pages)))
}

/// Presence alone counts: the empty string is a cursor (MCP "Pagination").
fn next_cursor(result: &Bytes) -> Option<String> {
    let object = Object::read(std::str::from_utf8(result).ok()?).ok()?;
    object.string("nextCursor").map(std::borrow::Cow::into_owned)
}

/// A tool whose `x-mcp-header` is invalid is left out of what is served (MCP 2026-07-28), the others stay.
fn learn(tools: Option<&mut List>, report: &Report) -> ParameterHeaders {
    let mut headers = ParameterHeaders::default();
    let Some(tools) = tools else { return headers };
    let mut invalid = Vec::new();
    for (name, tool) in tools.items() {
        if let Err(why) = headers.learn(name, tool) {
            report.warning(format!(
                "tool {} is left out: {why}; its operator must correct it",
                visible(&json::quote(name), 80)
            ));
            invalid.push(name.to_owned());
        }
    }
    for name in invalid {
        tools.hide(&name);
    }
    headers
}
