//! Names become addresses: while connecting, and only those that the URL may lead to. What was resolved earlier does
//! not count, because a name can lead elsewhere a moment later (rebinding).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

use super::address::Place;
use super::connect::Unreachable;
use super::guard::{NamedUrl, Reach};
use crate::report::visible;

/// Resolves as the system does. An address in place of a name never comes here: the connector takes it as it is, and
/// the URL's own check has judged it.
#[derive(Clone, Debug)]
pub(super) struct Resolver<R = GaiResolver> {
    admitted: Admitted,
    system: R,
}

/// The addresses that may be connected to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admitted {
    /// Every one: the user named the host.
    All,
    /// As far as the endpoint lies.
    Within(Reach),
    /// This machine's: the URL says so.
    Loopback,
}

impl Admitted {
    /// Where a URL may lead that somebody else named.
    pub(super) fn of(url: &NamedUrl, reach: Reach) -> Self {
        if url.is_loopback() { Admitted::Loopback } else { Admitted::Within(reach) }
    }

    fn admits(self, address: IpAddr) -> bool {
        match self {
            Admitted::All => true,
            Admitted::Within(reach) => reach.admits(Place::of(address)),
            Admitted::Loopback => Place::of(address) == Place::Loopback,
        }
    }
}

impl Resolver {
    pub(super) fn new(admitted: Admitted) -> Self {
        Resolver { admitted, system: GaiResolver::new() }
    }
}

impl<R> Service<Name> for Resolver<R>
where
    R: Service<Name, Response: Iterator<Item = SocketAddr>, Error: Into<Unreachable>, Future: Send + 'static>,
{
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Unreachable;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Unreachable>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Unreachable>> {
        self.system.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let admitted = self.admitted;
        let resolving = self.system.call(name.clone());
        Box::pin(async move {
            let found = resolving.await.map_err(Into::into)?;
            let (good, bad): (Vec<_>, Vec<_>) = found.partition(|address| admitted.admits(address.ip()));
            match bad.first() {
                Some(address) if good.is_empty() => {
                    let name = visible(name.as_str(), 80);
                    Err(LeadsAway { name, address: address.ip(), admitted }.into())
                }
                _ => Ok(good.into_iter()),
            }
        })
    }
}

/// A name leads only where its URL may not.
#[derive(Debug)]
struct LeadsAway {
    name: String,
    address: IpAddr,
    admitted: Admitted,
}

impl std::error::Error for LeadsAway {}

impl fmt::Display for LeadsAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeadsAway { name, address, admitted } = self;
        write!(f, "{name} leads to the {} address {address}, ", Place::of(*address))?;
        match admitted {
            Admitted::Within(reach) => write!(f, "which {reach} may not name"),
            Admitted::Loopback | Admitted::All => f.write_str("which is not this machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::net::connect::{cause, go, tcp};

    /// Answers every name with the same addresses.
    #[derive(Clone, Debug)]
    struct Fake(Vec<IpAddr>);

    impl Service<Name> for Fake {
        type Response = std::vec::IntoIter<SocketAddr>;
        type Error = std::io::Error;
        type Future = std::future::Ready<Result<Self::Response, std::io::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Name) -> Self::Future {
            let addresses: Vec<_> = self.0.iter().map(|address| SocketAddr::new(*address, 0)).collect();
            std::future::ready(Ok(addresses.into_iter()))
        }
    }

    fn fake(addresses: &[&str], admitted: Admitted) -> Resolver<Fake> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Resolver { admitted, system: Fake(addresses) }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: http::Uri =
            format!("https://as.example:{}/", listener.local_addr().unwrap().port()).parse().unwrap();
        for (reach, who) in
            [(Reach::Public, "a public endpoint"), (Reach::Private, "an endpoint in a private network")]
        {
            let refused = go(tcp(fake(&["127.0.0.1"], Admitted::Within(reach))), uri.clone()).await;
            assert_eq!(
                cause(&*refused.err().unwrap()),
                format!("as.example leads to the loopback address 127.0.0.1, which {who} may not name")
            );
        }
        // The same way without a guard does get there, and is the first that does.
        let admitted = go(tcp(fake(&["127.0.0.1"], Admitted::All)), uri).await;
        let (_, from) = listener.accept().await.unwrap();
        assert!(admitted.is_ok());
        drop(admitted);
        assert!(from.ip().is_loopback());
        let nobody = std::pin::pin!(listener.accept());
        assert!(is_pending(nobody), "one connection and no other");
    }

    fn is_pending(future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending()
    }

    #[tokio::test]
    async fn what_is_admitted_is_tried_and_nothing_else() {
        for (addresses, admitted, expected) in [
            (&["10.0.0.5", "1.1.1.1", "::1"][..], Admitted::Within(Reach::Public), Ok("1.1.1.1")),
            (&["10.0.0.5", "127.0.0.1"], Admitted::Within(Reach::Private), Ok("10.0.0.5")),
            (&["10.0.0.5", "127.0.0.1"], Admitted::Loopback, Ok("127.0.0.1")),
            (
                &["10.0.0.5"],
                Admitted::Within(Reach::Public),
                Err("h leads to the private address 10.0.0.5, which a public endpoint may not name"),
            ),
            (
                &["169.254.169.254"],
                Admitted::Within(Reach::Private),
                Err(
                    "h leads to the link-local address 169.254.169.254, which an endpoint in a private network may \
                     not name",
                ),
            ),
            (
                &["1.1.1.1"],
                Admitted::Loopback,
                Err("h leads to the public address 1.1.1.1, which is not this machine"),
            ),
        ] {
            let found = fake(addresses, admitted).call("h".parse().unwrap()).await;
            let found = found
                .map(|found| found.map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" "))
                .map_err(|why| why.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
    }
}
