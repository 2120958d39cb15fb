//! The only way out: one URL, one client. No redirects, no cookies, our trust roots, no proxy for loopback.

mod connect;
mod pool;
pub mod url;

pub use pool::{Body, Client, Lost};
pub use url::EndpointUrl;
