//! Reading the whole surface once: every list, every page.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::opening::{Patience, patiently};
use super::session::{OwnMethod, Session};
use super::trouble::Trouble;
use crate::limits::Limits;
use crate::report::{Report, quoted, visible};
use crate::surface::{Kind, List, Observed, ParameterHeaders, Skills};
use crate::wire::{Era, Object, json};

/// Reads it again in the session that it was read in. A legacy opening belongs to its session; a modern one is asked for
/// again, as its instructions are part of the surface.
///
/// # Errors
/// It cannot be read whole.
pub async fn read_again(
    session: &Arc<Session>,
    before: &Observed,
    limits: &Limits,
) -> Result<Observed, Trouble> {
    let opening = match session.era() {
        Era::Legacy => before.opening.clone(),
        Era::Modern => {
            patiently(Patience::Start, || session.ask(OwnMethod::Discover, "{}")).await?.into_payload()
        }
    };
    read(session, opening, limits, Patience::Start).await
}

/// Reads what the endpoint offers. `opening` is the result of `server/discover` or `initialize`.
pub(super) async fn read(
    session: &Arc<Session>,
    opening: Bytes,
    limits: &Limits,
    patience: Patience,
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
    let lists = [tools?, prompts?, templates?, skills?].into_iter().flatten();
    Ok(Observed::new(session.era(), opening.clone(), lists))
}

/// Says which skills cannot be used.
pub(super) fn warn_of_skills(observed: &Observed, report: &Report) {
    for (uri, why) in observed.skills().into_iter().flat_map(Skills::refused) {
        report.warning(format!("skill {} is refused: {why}; its operator must correct it", quoted(uri, 120)));
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
        let result = match patiently(patience, || session.ask(OwnMethod::List(kind), &params)).await {
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

/// Learns which arguments are mirrored in headers. A tool whose `x-mcp-header` is invalid is left out of what is served
/// (MCP 2026-07-28), the others stay; all of them stay part of the surface.
pub(super) fn learn_parameter_headers(session: &Session, observed: &mut Observed, report: &Report) {
    if session.era() == Era::Legacy {
        return;
    }
    let mut headers = ParameterHeaders::default();
    observed.hide(Kind::Tools, |name, tool| {
        let Err(wrong) = headers.learn(name, tool) else { return false };
        let tool = Kind::Tools.subject(name);
        report.warning(format!("{tool} is left out: {wrong}; its operator must correct it"));
        true
    });
    session.learn_parameter_headers(headers);
}
