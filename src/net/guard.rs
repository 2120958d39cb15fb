//! URLs that somebody else names: metadata, authorization servers, their endpoints. None leads where the endpoint
//! itself does not lie, so that a web address is no way to make us knock at the doors of this machine or network.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use http::Uri;
use url::{Host, Url};

use super::EndpointUrl;
use super::address::Place;
use super::connect::proxy_for;
use super::url::{authority, target, without_query};
use crate::report::visible;

/// How long a name may take to be resolved. Beyond it the endpoint counts as public.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How far a URL named by an endpoint may lead: as far as the endpoint itself lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Public addresses alone.
    Public,
    /// Private addresses too: the endpoint is in a company's own network. Never this machine, nor this link.
    Private,
    /// Anything: the endpoint is on this machine.
    Loopback,
}

impl Reach {
    /// How far the URLs of this endpoint may lead. Resolves its name; one that is unknown, or that a proxy resolves,
    /// counts as public.
    pub async fn of(endpoint: &EndpointUrl) -> Reach {
        let name = match endpoint.as_url().host() {
            Some(Host::Domain(name)) => name,
            Some(Host::Ipv4(address)) => return Reach::of_address(address.into()),
            Some(Host::Ipv6(address)) => return Reach::of_address(address.into()),
            None => return Reach::Public,
        };
        if is_localhost(name) {
            return Reach::Loopback;
        }
        if proxy_for(endpoint.as_uri()).is_some() {
            return Reach::Public;
        }
        match tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((name, 0))).await {
            Ok(Ok(addresses)) => Reach::of_name(addresses.map(|address| address.ip())),
            _ => Reach::Public,
        }
    }

    fn of_address(address: IpAddr) -> Reach {
        match Place::of(address) {
            Place::Loopback => Reach::Loopback,
            Place::Private => Reach::Private,
            Place::Public | Place::LinkLocal | Place::Reserved => Reach::Public,
        }
    }

    /// Who owns a name says where it leads. So one private address among others is not enough, and no name makes an
    /// endpoint one of this machine but `localhost`.
    fn of_name(addresses: impl Iterator<Item = IpAddr>) -> Reach {
        let mut addresses = addresses.peekable();
        let known = addresses.peek().is_some();
        if known && addresses.all(|address| Place::of(address) == Place::Private) {
            Reach::Private
        } else {
            Reach::Public
        }
    }

    /// Whether a URL may lead there.
    pub(super) fn admits(self, place: Place) -> bool {
        match self {
            Reach::Public => place == Place::Public,
            Reach::Private => matches!(place, Place::Public | Place::Private),
            Reach::Loopback => true,
        }
    }
}

/// The endpoint that reaches so far, for people.
impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reach::Public => "a public endpoint",
            Reach::Private => "an endpoint in a private network",
            Reach::Loopback => "an endpoint on this machine",
        })
    }
}

/// A URL that somebody else named. Can only be made by [`NamedUrl::parse`], so it never leads further than it may.
/// Keeps its text: issuers and resources are compared as text.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedUrl {
    text: String,
    url: Url,
    uri: Uri,
    loopback: bool,
}

/// Why such a URL is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAllowed {
    /// Not an absolute URL with a host, or with characters that no URL has.
    Syntax,
    /// Neither https, nor http on this machine.
    NotHttps,
    /// A user name or password in the URL.
    UserInfo,
    /// A fragment.
    Fragment,
    /// The host is an address (or `localhost`) that the endpoint may not name.
    Address {
        /// Where it leads.
        place: Place,
        /// How far the endpoint may lead us.
        reach: Reach,
    },
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotAllowed::Syntax => f.write_str("is not a URL with a host"),
            NotAllowed::NotHttps => f.write_str("is not https"),
            NotAllowed::UserInfo => f.write_str("holds a user name or password"),
            NotAllowed::Fragment => f.write_str("has a fragment (#…)"),
            NotAllowed::Address { place, reach } => {
                write!(f, "leads to a {place} address, which {reach} may not name")
            }
        }
    }
}

impl NamedUrl {
    /// Checks a URL as it was named. Where a name leads is checked while connecting, too.
    ///
    /// # Errors
    /// It is not one that an endpoint of that reach may name.
    pub fn parse(text: &str, reach: Reach) -> Result<Self, NotAllowed> {
        // A browser's parser drops tabs and takes `\` for `/`: such a text is not the URL it is read as.
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(NotAllowed::Syntax);
        }
        let url = Url::parse(text).map_err(|_| NotAllowed::Syntax)?;
        let literal = match url.host().ok_or(NotAllowed::NotHttps)? {
            Host::Domain(name) => is_localhost(name).then_some(Place::Loopback),
            Host::Ipv4(address) => Some(Place::of(address.into())),
            Host::Ipv6(address) => Some(Place::of(address.into())),
        };
        let loopback = literal == Some(Place::Loopback);
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            _ => return Err(NotAllowed::NotHttps),
        }
        if let Some(place) = literal.filter(|place| !reach.admits(*place)) {
            return Err(NotAllowed::Address { place, reach });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotAllowed::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(NotAllowed::Fragment);
        }
        let uri = url.as_str().parse().map_err(|_| NotAllowed::Syntax)?;
        Ok(NamedUrl { text: text.to_owned(), url, uri, loopback })
    }

    /// The URL as it was named.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The URL to send requests to.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    pub(super) fn as_uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn target(&self) -> Uri {
        target(&self.uri)
    }

    pub(super) fn authority(&self) -> &str {
        authority(&self.url)
    }
}

/// Shows origin and path: a query may hold a secret.
impl fmt::Display for NamedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&without_query(&self.url), 300))
    }
}

impl fmt::Debug for NamedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedUrl({self})")
    }
}

/// The names that are this machine wherever they are resolved (RFC 6761 §6.3). A URL has them in small letters.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, reach: Reach) -> String {
        NamedUrl::parse(text, reach).map_or_else(|why| why.to_string(), |_| "allowed".into())
    }

    #[test]
    fn only_https_with_a_host_and_nothing_hidden() {
        for (text, why) in [
            ("https://as.example", "allowed"),
            ("https://as.example/$(touch%20x)?a=b&calc", "allowed"),
            ("HTTPS://AS.example:8443/t1/", "allowed"),
            ("https://as.example/#", "has a fragment (#…)"),
            ("https://as.example/#token", "has a fragment (#…)"),
            ("https://u@as.example/", "holds a user name or password"),
            ("https://:p@as.example/", "holds a user name or password"),
            ("http://as.example/authorize", "is not https"),
            ("http://localhost.example/", "is not https"),
            ("ftp://as.example/", "is not https"),
            ("file:///etc/passwd", "is not https"),
            ("javascript:alert(1)", "is not https"),
            ("ms-settings:", "is not https"),
            ("data:text/html,x", "is not https"),
            ("as.example", "is not a URL with a host"),
            ("", "is not a URL with a host"),
            (" https://as.example", "is not a URL with a host"),
            ("https://as.example/\n", "is not a URL with a host"),
            ("https://as.ex\tample/", "is not a URL with a host"),
            ("https:\\\\as.example\\", "is not a URL with a host"),
            ("https://\u{430}s.example/", "is not a URL with a host"),
        ] {
            assert_eq!(refusal(text, Reach::Public), why, "{text:?}");
        }
    }

    #[test]
    fn no_spelling_of_an_address_leads_further_than_the_endpoint_lies() {
        for (place, hosts) in [
            (
                Place::Public,
                "1.1.1.1 as.example 0x01010101 [2606:4700::1111] [::ffff:1.1.1.1] localhost.example",
            ),
            (
                Place::Private,
                "10.0.0.5 167772165 012.0.0.5 10.5 0xa.0.0.5 [fd00::1] [::ffff:a00:5] 100.64.0.1",
            ),
            (
                Place::Loopback,
                "127.0.0.1 127.9.9.9 127.1 0x7f.1 2130706433 0177.0.0.1 127.0.0.1. [::1] [::ffff:127.0.0.1] \
                 [0:0:0:0:0:0:0:1] localhost LOCALHOST localhost. a.localhost %31%32%37.0.0.1",
            ),
            (Place::LinkLocal, "169.254.169.254 0xa9fea9fe [fe80::1] [64:ff9b::a9fe:a9fe]"),
            (Place::Reserved, "0.0.0.0 0 [::] 224.0.0.1 255.255.255.255 192.0.2.1"),
        ] {
            for host in hosts.split_whitespace() {
                let text = format!("https://{host}/x");
                for reach in [Reach::Public, Reach::Private, Reach::Loopback] {
                    let expected = match reach.admits(place) {
                        true => "allowed".to_owned(),
                        false => format!("leads to a {place} address, which {reach} may not name"),
                    };
                    assert_eq!(refusal(&text, reach), expected, "{text}");
                }
                let plain = NamedUrl::parse(&format!("http://{host}/x"), Reach::Loopback);
                assert_eq!(plain.is_ok(), place == Place::Loopback, "{host}");
                assert!(plain.is_err() || plain.is_ok_and(|url| url.is_loopback()), "{host}");
            }
        }
        assert_eq!(
            refusal("https://localhost/", Reach::Public),
            "leads to a loopback address, which a public endpoint may not name"
        );
    }

    #[test]
    fn the_text_stays_and_a_query_is_never_shown() {
        for text in ["https://h", "https://h/", "HTTPS://H/MCP/?a=%7E"] {
            let url = NamedUrl::parse(text, Reach::Public).unwrap();
            assert_eq!(url.text(), text);
        }
        let url = NamedUrl::parse("https://as.example/a?code=hunter2", Reach::Public).unwrap();
        assert_eq!(url.to_string(), "https://as.example/a?…");
        assert_eq!(format!("{url:?}"), "NamedUrl(https://as.example/a?…)");
        let long =
            NamedUrl::parse(&format!("https://as.example/{}", "a".repeat(999)), Reach::Public).unwrap();
        assert!(long.to_string().chars().count() <= 301);
    }

    #[tokio::test]
    async fn an_endpoint_reaches_as_far_as_it_lies() {
        for (endpoint, reach) in [
            ("http://127.0.0.1:1/mcp", Reach::Loopback),
            ("https://[::1]/mcp", Reach::Loopback),
            ("http://localhost/mcp", Reach::Loopback),
            ("https://a.localhost/mcp", Reach::Loopback),
            ("https://10.0.0.5/mcp", Reach::Private),
            ("https://[fd00::1]/mcp", Reach::Private),
            ("https://169.254.169.254/mcp", Reach::Public),
            ("https://1.1.1.1/mcp", Reach::Public),
            ("https://mcp.invalid/mcp", Reach::Public),
        ] {
            assert_eq!(Reach::of(&EndpointUrl::parse(endpoint).unwrap()).await, reach, "{endpoint}");
        }
    }

    #[test]
    fn a_name_is_private_only_if_all_its_addresses_are() {
        for (addresses, reach) in [
            ("10.0.0.5 fd00::1", Reach::Private),
            ("10.0.0.5 1.1.1.1", Reach::Public),
            ("10.0.0.5 127.0.0.1", Reach::Public),
            ("127.0.0.1", Reach::Public),
            ("1.1.1.1", Reach::Public),
            ("", Reach::Public),
        ] {
            let resolved = addresses.split_whitespace().map(|address| address.parse().unwrap());
            assert_eq!(Reach::of_name(resolved), reach, "{addresses}");
        }
    }
}
