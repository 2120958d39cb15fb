//! The one URL: https, or http for a loopback host alone.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use url::{Position, Url};

/// The address of the endpoint. Can only be made by [`EndpointUrl::parse`], so it is always a permitted one.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    typed: String,
    url: Url,
    uri: Uri,
    loopback: bool,
}

/// Why a URL is not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPermitted {
    /// Not an absolute URL with a host.
    Syntax,
    /// Plain http to a host that is not a loopback host.
    PlainHttp,
    /// Neither https nor http.
    Scheme,
    /// A user name or password in the URL.
    UserInfo,
    /// A fragment, which is never sent.
    Fragment,
}

impl fmt::Display for NotPermitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotPermitted::Syntax => "is not a URL with a host",
            NotPermitted::PlainHttp => "is plain http, which is accepted for loopback hosts alone; use https",
            NotPermitted::Scheme => "is neither https nor http",
            NotPermitted::UserInfo => "holds a user name or password; use --token-file or --header-file",
            NotPermitted::Fragment => "has a fragment (#…), which no server would see; leave it out",
        })
    }
}

impl EndpointUrl {
    /// Checks a URL as typed.
    pub fn parse(text: &str) -> Result<Self, NotPermitted> {
        let typed = text.trim();
        let url = Url::parse(typed).map_err(|_| NotPermitted::Syntax)?;
        let host = url.host_str().ok_or(NotPermitted::Syntax)?;
        let loopback = is_loopback(host);
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            "http" => return Err(NotPermitted::PlainHttp),
            _ => return Err(NotPermitted::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotPermitted::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(NotPermitted::Fragment);
        }
        let uri = url.as_str().parse().map_err(|_| NotPermitted::Syntax)?;
        Ok(EndpointUrl { typed: typed.to_owned(), url, uri, loopback })
    }

    /// The URL as typed, which is what a server may compare it with, character by character.
    pub fn as_typed(&self) -> &str {
        &self.typed
    }

    /// The URL to send requests to.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// The same, as the connectors take it.
    pub fn as_uri(&self) -> &Uri {
        &self.uri
    }

    /// What a request line names.
    pub fn target(&self) -> Uri {
        target(&self.uri)
    }

    /// What `Host` says.
    pub fn authority(&self) -> &str {
        authority(&self.url)
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Whether it is plain http.
    pub fn is_plain_http(&self) -> bool {
        self.url.scheme() == "http"
    }
}

/// Shows origin and path: a query may hold a secret.
impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_query(&self.url))
    }
}

impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointUrl({self})")
    }
}

/// Origin and path of a URL, for people.
pub fn without_query(url: &Url) -> String {
    let query = if url.query().is_some() { "?…" } else { "" };
    format!("{}{}{query}", url.origin().ascii_serialization(), url.path())
}

/// What a request line names: path and query (RFC 9112 §3.2.1).
pub(super) fn target(uri: &Uri) -> Uri {
    uri.path_and_query().cloned().map(Uri::from).unwrap_or_default()
}

/// What `Host` says: the port only where it is not the scheme's own (RFC 9110 §7.2).
pub(super) fn authority(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

fn is_loopback(host: &str) -> bool {
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_anywhere_and_http_on_loopback_alone() {
        for good in [
            "https://a.example/mcp",
            "https://a.example:8443/a?b=c",
            "http://127.0.0.1:1/",
            "http://127.9.9.9/x",
            "http://[::1]:80/mcp",
            "http://LOCALHOST/mcp",
        ] {
            assert!(EndpointUrl::parse(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("http://a.example/mcp", NotPermitted::PlainHttp),
            ("http://localhost.example/", NotPermitted::PlainHttp),
            ("http://127.0.0.1.example/", NotPermitted::PlainHttp),
            ("http://0.0.0.0/", NotPermitted::PlainHttp),
            ("http://[::]/", NotPermitted::PlainHttp),
            ("ftp://a.example/", NotPermitted::Scheme),
            ("file:///etc/passwd", NotPermitted::Syntax),
            ("a.example/mcp", NotPermitted::Syntax),
            ("", NotPermitted::Syntax),
            ("https://u@a.example/", NotPermitted::UserInfo),
            ("https://:p@a.example/", NotPermitted::UserInfo),
            ("https://a.example/#x", NotPermitted::Fragment),
        ] {
            assert_eq!(EndpointUrl::parse(bad).unwrap_err(), why, "{bad}");
        }
    }

    #[test]
    fn a_query_is_never_shown() {
        let url = EndpointUrl::parse("https://a.example/mcp?key=hunter2").unwrap();
        assert_eq!(url.to_string(), "https://a.example/mcp?…");
        assert!(!format!("{url:?}").contains("hunter2"));
    }
    #[test]
    fn the_text_stays_as_typed() {
        for text in ["https://a.example", "https://a.example/", "HTTPS://A.example:443/MCP/?a=%7E"] {
            assert_eq!(EndpointUrl::parse(&format!(" {text}\n")).unwrap().as_typed(), text);
        }
    }
}
