//! The real binary against strict fakes on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::large_futures,
    missing_docs,
    unreachable_pub,
    reason = "a test may stop at the first surprise"
)]

mod asking;
mod calls;
mod denied;
mod eras;
mod forward;
mod headers;
mod layers;
mod listen;
mod logging;
mod opened;
mod openings;
mod probe;
mod questions;
mod rounds;
mod self_tests;
mod sessions;
mod streams;
mod subscriptions;
mod support;
mod translation;
