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

mod self_tests;
mod support;
