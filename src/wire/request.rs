//! A request of the harness in the one form used between the doors.

use std::sync::Arc;

use super::json::Object;
use super::meta;
use super::{Message, json, parse};

/// A request on its way to the endpoint.
#[derive(Debug)]
pub struct Request {
    message: Message,
    /// What the harness can do, as far as the user allows it.
    pub client: Arc<Declared>,
    /// From which severity on the harness wants log messages, a JSON string.
    pub log_level: Option<String>,
    /// The harness's progress token, a JSON string or integer as it came.
    pub progress_token: Option<String>,
}

impl Request {
    /// Takes a request of the harness over.
    pub fn new(message: Message, client: Arc<Declared>, log_level: Option<String>) -> Self {
        let progress_token = progress_token(&message.meta());
        Request { message, client, log_level, progress_token }
    }

    /// The same request with other `params`, an object.
    #[must_use]
    pub fn with_params(self, params: &str) -> Self {
        let method = json::quote(self.method());
        let text = format!(r#"{{"jsonrpc":"2.0","id":0,"method":{method},"params":{params}}}"#);
        match parse(text.into_bytes()) {
            Ok(message) => Request { message, ..self },
            // Put together from parts that were read before, so it is readable.
            Err(_) => self,
        }
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.message.method().unwrap_or_default()
    }

    /// The members of `params`, as they came.
    pub fn params(&self) -> Object<'_> {
        self.message.payload()
    }

    /// The members of `_meta`.
    pub fn meta(&self) -> Object<'_> {
        self.message.meta()
    }
}

/// A result that asks for input (SEP-2322). `requests` are the members of `inputRequests`, `state` is plain ASCII.
pub fn input_required(requests: &str, state: Option<&str>) -> Option<Message> {
    let state = state.map(|state| format!(r#","requestState":"{state}""#)).unwrap_or_default();
    let result = format!(r#"{{"resultType":"input_required","inputRequests":{{{requests}}}{state}}}"#);
    parse(format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#).into_bytes()).ok()
}

/// A progress token: a string or an integer.
pub fn progress_token(meta: &Object<'_>) -> Option<String> {
    meta.get("progressToken").filter(|token| !token.starts_with(['{', '[', 't', 'f', 'n'])).map(str::to_owned)
}

/// Capabilities, and how they are declared to the endpoint.
#[derive(Debug, Default)]
pub struct Declared {
    client: Client,
    json: String,
}

impl Declared {
    /// Declares what a client can do.
    pub fn new(client: Client) -> Self {
        Declared { json: client.to_json(), client }
    }

    /// The capabilities.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The `ClientCapabilities` object.
    pub fn json(&self) -> &str {
        &self.json
    }
}

/// The capabilities of a client that concern an endpoint, as raw texts where their content matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Can show a form to the user.
    pub elicitation_form: bool,
    /// Can send the user to a URL.
    pub elicitation_url: bool,
    /// `sampling`, an object.
    pub sampling: Option<String>,
    /// `roots`, an object.
    pub roots: Option<String>,
    /// The settings of the skills extension (SEP-2640), an object.
    pub skills: Option<String>,
}

/// The skills extension (SEP-2640).
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

impl Client {
    /// Reads a `ClientCapabilities` object. What this program cannot relay is left out (tasks, other extensions).
    pub fn read(capabilities: &Object<'_>) -> Self {
        let object = |key: &str| capabilities.object(key).ok().flatten();
        let (form, url) = match object("elicitation") {
            // `{}` means forms (MCP "Elicitation").
            Some(modes) => {
                (modes.get("form").is_some() || modes.get("url").is_none(), modes.get("url").is_some())
            }
            None => (false, false),
        };
        Client {
            elicitation_form: form,
            elicitation_url: url,
            sampling: object("sampling").map(|found| found.text().to_owned()),
            roots: object("roots").map(|found| found.text().to_owned()),
            skills: object("extensions").and_then(|extensions| {
                extensions.object(SKILLS).ok().flatten().map(|found| found.text().to_owned())
            }),
        }
    }

    /// The capabilities of a modern request.
    pub fn of_meta(meta: &Object<'_>) -> Option<Self> {
        Some(Client::read(&meta.object(meta::CLIENT_CAPABILITIES).ok().flatten()?))
    }

    /// Leaves only what the user allows.
    #[must_use]
    pub fn limited(mut self, sampling: bool, roots: bool) -> Self {
        self.sampling = self.sampling.filter(|_| sampling);
        self.roots = self.roots.filter(|_| roots);
        self
    }

    /// Whether everything that `other` can do is among what this one can.
    pub fn covers(&self, other: &Client) -> bool {
        (self.elicitation_form || !other.elicitation_form)
            && (self.elicitation_url || !other.elicitation_url)
            && (self.sampling.is_some() || other.sampling.is_none())
            && (self.roots.is_some() || other.roots.is_none())
    }

    /// Everything that either can do.
    #[must_use]
    pub fn union(self, other: &Client) -> Self {
        Client {
            elicitation_form: self.elicitation_form || other.elicitation_form,
            elicitation_url: self.elicitation_url || other.elicitation_url,
            sampling: self.sampling.or_else(|| other.sampling.clone()),
            roots: self.roots.or_else(|| other.roots.clone()),
            skills: self.skills.or_else(|| other.skills.clone()),
        }
    }

    /// The `ClientCapabilities` object to declare to the endpoint.
    pub fn to_json(&self) -> String {
        let mut members = Vec::new();
        match (self.elicitation_form, self.elicitation_url) {
            (true, true) => members.push(r#""elicitation":{"form":{},"url":{}}"#.to_owned()),
            (true, false) => members.push(r#""elicitation":{"form":{}}"#.to_owned()),
            (false, true) => members.push(r#""elicitation":{"url":{}}"#.to_owned()),
            (false, false) => {}
        }
        for (key, value) in [("sampling", &self.sampling), ("roots", &self.roots)] {
            members.extend(value.as_ref().map(|value| format!("\"{key}\":{value}")));
        }
        members.extend(self.skills.as_ref().map(|value| format!(r#""extensions":{{"{SKILLS}":{value}}}"#)));
        format!("{{{}}}", members.join(","))
    }

    /// Whether a question of this kind can be put to the harness.
    pub fn can_answer(&self, question: &Question<'_>) -> bool {
        match question.method {
            "elicitation/create" if question.is_url_mode() => self.elicitation_url,
            "elicitation/create" => self.elicitation_form,
            "sampling/createMessage" => self.sampling.is_some(),
            "roots/list" => self.roots.is_some(),
            _ => false,
        }
    }
}

/// Something the endpoint asks of the harness.
#[derive(Debug)]
pub struct Question<'a> {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: &'a str,
    /// Its `params`, an object.
    pub params: &'a str,
}

impl Question<'_> {
    /// Whether the user is to be sent to a URL rather than shown a form.
    pub fn is_url_mode(&self) -> bool {
        Object::read(self.params).is_ok_and(|params| params.string("mode").as_deref() == Some("url"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Client {
        Client::read(&Object::read(text).unwrap())
    }

    #[test]
    fn an_empty_elicitation_means_forms() {
        assert_eq!(client(r#"{"elicitation":{}}"#).to_json(), r#"{"elicitation":{"form":{}}}"#);
        assert_eq!(client(r#"{"elicitation":{"url":{}}}"#).to_json(), r#"{"elicitation":{"url":{}}}"#);
        assert_eq!(client("{}").to_json(), "{}");
    }

    #[test]
    fn only_what_can_be_relayed_and_is_allowed_is_declared() {
        let all = client(
            r#"{"roots":{"listChanged":true},"sampling":{},"tasks":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true},"com.x/y":{}}}"#,
        );
        assert_eq!(
            all.clone().limited(false, false).to_json(),
            r#"{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}"#
        );
        assert!(
            all.clone()
                .limited(true, true)
                .to_json()
                .starts_with(r#"{"sampling":{},"roots":{"listChanged":true},"#)
        );
        assert!(all.covers(&client("{}")) && !client("{}").covers(&all));
    }
}
