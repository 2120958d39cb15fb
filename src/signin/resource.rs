//! Which authorization server the endpoint names: its protected resource metadata (RFC 9728).

use url::Url;

use super::document::{Document, fetch};
use super::{Options, Problem};
use crate::endpoint::Challenge;
use crate::net::{EndpointUrl, NamedUrl, Web};
use crate::report::{Report, quoted};

/// The well-known name (RFC 9728 §3).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What the endpoint says of itself, checked to be about this endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// What tokens are asked for (RFC 8707), character by character as it was given.
    pub resource: String,
    /// The authorization server to be used.
    pub issuer: String,
    /// `scopes_supported`
    pub scopes: Vec<String>,
}

/// Reads and checks the document. `known` is the issuer of a stored sign-in.
///
/// # Errors
/// There is no document that may be used, or it names no authorization server that may be.
pub async fn find(
    web: &Web,
    endpoint: &EndpointUrl,
    challenge: &Challenge,
    options: &Options,
    known: Option<&str>,
    report: &Report,
) -> Result<Resource, Problem> {
    let document = match &challenge.resource_metadata {
        Some(named) => {
            let url = NamedUrl::parse(named, web.reach()).map_err(|why| {
                Problem::failed(format!(
                    "the endpoint names {} as its metadata, which {why}; tell its operator",
                    quoted(named, 200)
                ))
            })?;
            // The one that is named is to be used (MCP "Protected Resource Metadata Discovery"), so no other is looked for.
            Some(fetch(web, &url).await?.map_err(|why| {
                Problem::failed(format!("the endpoint's metadata cannot be read: {why}; tell its operator"))
            })?)
        }
        None => look(web, endpoint).await?,
    };
    let Some(document) = document else {
        // The user names the server, so the endpoint need not.
        let Some(issuer) = &options.issuer else {
            return Err(Problem::failed(format!(
                "{endpoint} asks for a sign-in and does not say where (no metadata by RFC 9728); name its authorization server with --issuer, or give a token with --token-file"
            )));
        };
        let resource = options.resource.clone().unwrap_or_else(|| endpoint.as_typed().to_owned());
        return Ok(Resource { resource, issuer: issuer.clone(), scopes: Vec::new() });
    };
    check(&document, endpoint, options, known, report)
}

/// Looks at the well-known places, the one for the whole URL first.
async fn look(web: &Web, endpoint: &EndpointUrl) -> Result<Option<Document>, Problem> {
    for place in places(endpoint.as_url()) {
        let Ok(url) = NamedUrl::parse(&place, web.reach()) else { continue };
        if let Ok(document) = fetch(web, &url).await? {
            return Ok(Some(document));
        }
    }
    Ok(None)
}

/// The well-known name is inserted between host and path (RFC 9728 §3.1); a slash right after the host is none.
fn places(endpoint: &Url) -> Vec<String> {
    let origin = endpoint.origin().ascii_serialization();
    let root = format!("{origin}{WELL_KNOWN}");
    let path = endpoint.path().strip_suffix('/').filter(|path| path.is_empty()).unwrap_or(endpoint.path());
    let query = endpoint.query().map(|query| format!("?{query}")).unwrap_or_default();
    if path.is_empty() && query.is_empty() {
        return vec![root];
    }
    vec![format!("{root}{path}{query}"), root]
}

fn check(
    document: &Document,
    endpoint: &EndpointUrl,
    options: &Options,
    known: Option<&str>,
    report: &Report,
) -> Result<Resource, Problem> {
    let resource = document.text("resource").ok_or_else(|| {
        Problem::failed("the endpoint's metadata names no resource (RFC 9728 §2); tell its operator")
    })?;
    let overridden = options.resource.as_deref();
    if !covers(resource, endpoint) && overridden != Some(resource) {
        return Err(Problem::failed(format!(
            "the endpoint's metadata is for {}, not for {endpoint} (RFC 9728 §3.3), and is not used; check the URL, or tell its operator",
            quoted(resource, 200)
        )));
    }
    let servers = document.texts("authorization_servers").unwrap_or_default();
    let issuer = choose(&servers, options.issuer.as_deref(), known)?;
    if servers.len() > 1 {
        report.info(format!(
            "the endpoint names {} authorization servers; taken is {}",
            servers.len(),
            quoted(&issuer, 200)
        ));
    }
    Ok(Resource {
        resource: overridden.unwrap_or(resource).to_owned(),
        issuer,
        scopes: crate::endpoint::challenge::scopes(
            &document.texts("scopes_supported").unwrap_or_default().join(" "),
        ),
    })
}

/// The same URL, or a parent of it by whole segments of the path: what MCP calls a canonical URI may be shorter than the
/// endpoint's.
fn covers(resource: &str, endpoint: &EndpointUrl) -> bool {
    if resource == endpoint.as_typed() {
        return true;
    }
    let Ok(parent) = Url::parse(resource) else { return false };
    let url = endpoint.as_url();
    if parent.fragment().is_some() || !parent.username().is_empty() || parent.password().is_some() {
        return false;
    }
    if parent.origin() != url.origin() || parent.query().is_some_and(|query| Some(query) != url.query()) {
        return false;
    }
    let (above, below) = (parent.path().trim_end_matches('/'), url.path());
    below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The one the user allows, else the one a sign-in is stored for, else the first.
fn choose(servers: &[String], allowed: Option<&str>, known: Option<&str>) -> Result<String, Problem> {
    let Some(first) = servers.first() else {
        return Err(Problem::failed(
            "the endpoint's metadata names no authorization server (RFC 9728 §2); tell its operator",
        ));
    };
    if let Some(allowed) = allowed {
        if servers.iter().any(|server| server == allowed) {
            return Ok(allowed.to_owned());
        }
        return Err(Problem::failed(format!(
            "the endpoint names {} as its authorization server, and --issuer allows {} alone; if the change is right, change --issuer",
            quoted(first, 200),
            quoted(allowed, 200)
        )));
    }
    Ok(known.filter(|known| servers.iter().any(|server| server == known)).unwrap_or(first).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn endpoint(text: &str) -> EndpointUrl {
        EndpointUrl::parse(text).unwrap()
    }

    #[test]
    fn the_well_known_name_stands_between_host_and_path() {
        for (url, expected) in [
            ("https://h", &["https://h/W"][..]),
            ("https://h/", &["https://h/W"]),
            ("https://h:8443/a/mcp", &["https://h:8443/W/a/mcp", "https://h:8443/W"]),
            ("https://h/mcp/", &["https://h/W/mcp/", "https://h/W"]),
            ("https://h/mcp?t=1", &["https://h/W/mcp?t=1", "https://h/W"]),
        ] {
            let expected: Vec<_> = expected.iter().map(|place| place.replace("/W", WELL_KNOWN)).collect();
            assert_eq!(places(endpoint(url).as_url()), expected);
        }
    }

    #[test]
    fn a_resource_is_the_endpoint_or_above_it_by_whole_segments() {
        let url = "https://h/a/mcp";
        for yes in
            ["https://h/a/mcp", "https://h/a", "https://h/a/", "https://h", "https://h/", "HTTPS://H:443/a"]
        {
            assert!(covers(yes, &endpoint(url)), "{yes}");
        }
        for no in [
            "https://h/a/mcp2",
            "https://h/a/m",
            "https://h/b",
            "http://h/a/mcp",
            "https://h:8443/a/mcp",
            "https://x/a/mcp",
            "https://h/a/mcp/x",
            "https://h/a/mcp?q=1",
            "https://h/a/mcp#f",
            "https://u@h/a/mcp",
            "",
            "h/a/mcp",
        ] {
            assert!(!covers(no, &endpoint(url)), "{no}");
        }
        assert!(covers("https://h/MCP/", &endpoint("https://h/MCP/")));
        assert!(!covers("https://h/mcp/", &endpoint("https://h/MCP/")));
        assert!(covers("https://h/m?t=1", &endpoint("https://h/m?t=1")));
    }

    fn checked(document: serde_json::Value, options: &Options) -> Result<Resource, Problem> {
        let report = Report::start(crate::report::Level::Error, crate::report::Format::Text);
        let (document, endpoint) = (Document::of(document), endpoint("https://h/mcp"));
        check(&document, &endpoint, options, Some("https://b"), &report)
    }

    #[test]
    fn the_stored_server_is_taken_before_the_first_and_the_allowed_one_alone() {
        let document = |servers: &[&str]| json!({"resource": "https://h", "authorization_servers": servers});
        let issuer = |servers: &[&str], issuer: Option<&str>| {
            let options = Options { issuer: issuer.map(str::to_owned), ..Options::default() };
            checked(document(servers), &options).map(|found| found.issuer).map_err(|why| why.why)
        };
        assert_eq!(issuer(&["https://a", "https://b"], None).unwrap(), "https://b");
        assert_eq!(issuer(&["https://a", "https://c"], None).unwrap(), "https://a");
        assert_eq!(issuer(&["https://a", "https://c"], Some("https://c")).unwrap(), "https://c");
        assert!(
            issuer(&["https://a"], Some("https://a/"))
                .unwrap_err()
                .contains("--issuer allows \"https://a/\" alone")
        );
        assert!(issuer(&[], None).unwrap_err().contains("names no authorization server"));
    }

    #[test]
    fn what_is_not_for_this_endpoint_is_not_used_unless_the_user_says_so() {
        let foreign = json!({"resource": "https://h/mcp2", "authorization_servers": ["https://a"]});
        let why = checked(foreign.clone(), &Options::default()).unwrap_err().why;
        assert!(why.contains("\"https://h/mcp2\"") && why.contains("https://h/mcp "), "{why}");
        let options = Options { resource: Some("https://h/mcp2".into()), ..Options::default() };
        assert_eq!(checked(foreign, &options).unwrap().resource, "https://h/mcp2");
        assert!(checked(json!({"authorization_servers": ["https://a"]}), &Options::default()).is_err());
        let named = json!({"resource": "https://h", "authorization_servers": ["https://a"], "scopes_supported": ["a", "b c", 5]});
        let found = checked(named, &Options::default()).unwrap();
        assert_eq!((found.resource.as_str(), found.scopes.join("+").as_str()), ("https://h", "a+b+c"));
    }
}
