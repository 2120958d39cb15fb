//! A metadata document: a JSON object at a URL that somebody else named.

use serde_json::{Map, Value};

use super::Problem;
use crate::net::{NamedUrl, Web, WebTrouble};

/// Entries of one list that are looked at.
const MOST_ENTRIES: usize = 64;

/// A document as it was found.
pub(super) struct Document(Map<String, Value>);

/// Looks for a document at one place. Within: why there is none there, so that it may be looked for elsewhere.
///
/// # Errors
/// The server is at fault or cannot be reached, so that nothing can be said about other places.
pub(super) async fn fetch(web: &Web, url: &NamedUrl) -> Result<Result<Document, String>, Problem> {
    let fetched = match web.get(url).await {
        Ok(fetched) => fetched,
        Err(trouble @ (WebTrouble::Redirect { .. } | WebTrouble::TooLarge { .. } | WebTrouble::Encoded)) => {
            return Ok(Err(format!("{url} {trouble}")));
        }
        Err(trouble) => {
            return Err(Problem::failed(format!("{url} {trouble}; check the network, or tell its operator")));
        }
    };
    match fetched.status {
        200 => {}
        500.. => {
            return Err(Problem::failed(format!(
                "{url} answered HTTP {}; try again later, or tell its operator",
                fetched.status
            )));
        }
        status => return Ok(Err(format!("{url} answered HTTP {status}"))),
    }
    if !fetched.is_json {
        return Ok(Err(format!("{url} is not JSON")));
    }
    match serde_json::from_slice(&fetched.body) {
        Ok(Value::Object(members)) => Ok(Ok(Document(members))),
        _ => Ok(Err(format!("{url} is not a JSON object"))),
    }
}

impl Document {
    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A list of texts, as much of it as is one. `None`: there is no list.
    pub(super) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let list = self.0.get(name)?.as_array()?;
        Some(list.iter().take(MOST_ENTRIES).filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Whether it says `true`.
    pub(super) fn says(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }
}

#[cfg(test)]
impl Document {
    pub(super) fn of(value: Value) -> Self {
        Document(value.as_object().cloned().unwrap_or_default())
    }
}
