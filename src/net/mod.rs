//! The only way out. To the endpoint: one URL, one [`Client`]. To what an endpoint names for a sign-in: a [`Web`] that
//! leads no further than the endpoint lies. No redirects, no cookies, our trust roots, no proxy for loopback.

mod address;
mod connect;
mod guard;
mod pool;
mod resolve;
mod retry_after;
pub mod url;
mod web;

use http::HeaderValue;

pub use address::Place;
pub use connect::cause;
pub use guard::{NamedUrl, NotAllowed, Reach};
pub use pool::{Body, Client, Lost};
pub use retry_after::retry_after;
pub use url::EndpointUrl;
pub use web::{Fetched, Web, WebTrouble};

/// What `User-Agent` says, unless the user says something else.
pub const OUR_NAME: HeaderValue = HeaderValue::from_static(concat!("mcp-hasp/", env!("CARGO_PKG_VERSION")));
