//! What a protected endpoint does before it does anything else: looks at the bearer token, and says where to get one.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    authority::{Shared, Standing},
    record::{Book, Recorded},
    reply::Reply,
};

/// Where the document of the protected resource is (RFC 9728 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrmPlace {
    /// `/.well-known/oauth-protected-resource/mcp`
    Path,
    /// `/.well-known/oauth-protected-resource`
    Root,
    /// At both places.
    Both,
    /// Nowhere.
    None,
}

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

type Document = Box<dyn Fn(&mut Value) + Send + Sync>;
type Challenge = Box<dyn Fn(String) -> Vec<String> + Send + Sync>;

/// How an endpoint is protected.
pub struct Guard {
    /// Whose tokens are taken; none: the endpoint is open, and answers probes.
    pub authorities: Vec<Arc<Shared>>,
    pub place: PrmPlace,
    pub document: Option<Document>,
    pub challenge: Option<Challenge>,
    pub points: bool,
    /// The status of the place that has no document.
    pub absent: u16,
    /// The `scope` of the first challenge.
    pub scope: Option<String>,
    /// Tools that need a scope.
    pub needs: Vec<(String, String)>,
    pub allow_foreign: bool,
    /// Streams end when the token does that opened them.
    pub ends_streams: bool,
    url: OnceLock<String>,
}

/// What becomes of a request.
pub enum Verdict {
    /// It goes on. The token ends then.
    Pass(Option<Instant>),
    /// It is answered so.
    Refuse(Reply),
}

impl Guard {
    /// Nothing is protected yet.
    pub fn new() -> Self {
        Self {
            authorities: Vec::new(),
            place: PrmPlace::Path,
            document: None,
            challenge: None,
            points: true,
            absent: 404,
            scope: None,
            needs: Vec::new(),
            allow_foreign: false,
            ends_streams: false,
            url: OnceLock::new(),
        }
    }

    /// The endpoint is there now; tells the authorization servers which resource it is.
    pub fn started(&self, url: String) {
        let resource = match self.place {
            PrmPlace::None => url.clone(),
            _ => self.prm(&url)["resource"].as_str().unwrap_or_default().to_owned(),
        };
        if covers(&resource, &url) {
            self.authorities.iter().for_each(|authority| authority.protects(&resource));
        }
        let _ = self.url.set(url);
    }

    fn prm(&self, url: &str) -> Value {
        let issuers: Vec<String> = self.authorities.iter().map(|authority| authority.issuer()).collect();
        let mut document = json!({
            "resource": url,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if let Some(change) = &self.document {
            change(&mut document);
        }
        document
    }

    /// The answer to a request for a well-known document; `None` where it is none. Broken rules are noted.
    pub fn document_for(&self, request: &Recorded, path: &str, book: &Book) -> Option<Reply> {
        if !request.path.starts_with("/.well-known/") {
            return None;
        }
        let note = |holds: bool, text: &str| {
            if !holds {
                book.violation(format!("#{} {} {}: {text}", request.order, request.verb, request.path));
            }
        };
        note(request.verb == "GET", "a document asked for with another verb than GET");
        note(request.header("authorization").is_none(), "a document asked for with an Authorization");
        note(request.header("cookie").is_none(), "a cookie");
        let below = format!("{WELL_KNOWN}{}", if path == "/" { "" } else { path });
        let at_path = matches!(self.place, PrmPlace::Path | PrmPlace::Both) && request.path == below;
        let at_root = matches!(self.place, PrmPlace::Root | PrmPlace::Both) && request.path == WELL_KNOWN;
        if !self.authorities.is_empty() && (at_path || at_root) {
            let document = self.prm(self.url.get().unwrap());
            return Some(Reply::full(200, "application/json", document.to_string()));
        }
        let prm = request.path.starts_with(WELL_KNOWN);
        Some(Reply::status(if prm { self.absent } else { 404 }))
    }

    /// Whether a request may go on. Broken rules are noted.
    pub fn judge(&self, request: &Recorded, path: &str, book: &Book) -> Verdict {
        if self.authorities.is_empty() {
            return Verdict::Pass(None);
        }
        let note = |text: &str| {
            book.violation(format!("#{} {} {}: {text}", request.order, request.verb, request.path));
        };
        if request.path.contains("access_token=") {
            note("a bearer token in the URL");
        }
        let sent: Vec<&(String, String)> =
            request.headers.iter().filter(|(name, _)| name == "authorization").collect();
        if sent.len() > 1 {
            note("several Authorization headers");
        }
        let Some((_, value)) = sent.first() else {
            return Verdict::Refuse(self.unauthorized(path, None));
        };
        let Some(token) = value.strip_prefix("Bearer ") else {
            note("an Authorization that is no Bearer");
            return Verdict::Refuse(self.unauthorized(path, Some("invalid_request")));
        };
        let invalid = || Verdict::Refuse(self.unauthorized(path, Some("invalid_token")));
        let standings = self.authorities.iter().map(|authority| authority.standing(token));
        match standings.into_iter().find(|standing| !matches!(standing, Standing::Unknown)) {
            None | Some(Standing::Unknown) => {
                if !self.allow_foreign {
                    note("a token that no authorization server of this endpoint has issued");
                }
                invalid()
            }
            Some(Standing::Dead) => invalid(),
            Some(Standing::Good { resource, scopes, ends }) => {
                let url = self.url.get().unwrap();
                let mine = match self.place {
                    PrmPlace::None => url.clone(),
                    _ => self.prm(url)["resource"].as_str().unwrap_or_default().to_owned(),
                };
                if resource != mine {
                    note("a token for another resource");
                    return invalid();
                }
                match self.missing(request, &scopes) {
                    None => Verdict::Pass(ends),
                    Some(scope) => Verdict::Refuse(self.insufficient(path, &scope)),
                }
            }
        }
    }

    fn missing(&self, request: &Recorded, scopes: &BTreeSet<String>) -> Option<String> {
        let wants = |(tool, scope): &&(String, String)| {
            request.method() == "tools/call" && request.subject() == tool && !scopes.contains(scope)
        };
        self.needs.iter().find(wants).map(|(_, scope)| scope.clone())
    }

    fn unauthorized(&self, path: &str, error: Option<&str>) -> Reply {
        let error = error.map(|error| format!(r#"error="{error}""#));
        let scope = self.scope.as_ref().map(|scope| format!(r#"scope="{scope}""#));
        self.challenged(401, [error, self.pointer(path), scope])
    }

    fn insufficient(&self, path: &str, scope: &str) -> Reply {
        let error = Some(r#"error="insufficient_scope""#.to_owned());
        self.challenged(403, [error, Some(format!(r#"scope="{scope}""#)), self.pointer(path)])
    }

    fn pointer(&self, path: &str) -> Option<String> {
        let url = self.url.get()?;
        let origin = url.strip_suffix(path).unwrap_or(url);
        let place = match self.place {
            PrmPlace::None => return None,
            PrmPlace::Root => WELL_KNOWN.to_owned(),
            _ => format!("{WELL_KNOWN}{}", if path == "/" { "" } else { path }),
        };
        self.points.then(|| format!(r#"resource_metadata="{origin}{place}""#))
    }

    fn challenged(&self, status: u16, parts: [Option<String>; 3]) -> Reply {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let default = format!("Bearer {}", parts.join(", ")).trim_end().to_owned();
        let fields = match &self.challenge {
            Some(challenge) => challenge(default),
            None => vec![default],
        };
        let reply = Reply::full(status, "application/json", r#"{"error":"the fake refuses the token"}"#);
        fields.iter().fold(reply, |reply, field| reply.with_header("www-authenticate", field))
    }
}

/// Whether a resource is that URL, or a parent of it by whole segments.
fn covers(resource: &str, url: &str) -> bool {
    let rest = url.strip_prefix(resource);
    rest.is_some_and(|rest| rest.is_empty() || resource.ends_with('/') || rest.starts_with(['/', '?']))
}
