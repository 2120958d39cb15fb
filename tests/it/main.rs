//! The real binary against strict fakes on loopback.
#![allow(
    clippy::disallowed_methods,
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
mod channel;
mod cli;
mod denied;
mod eras;
mod faults;
mod forward;
mod headers;
mod inspect;
mod layers;
mod life;
mod listen;
mod lock;
mod logging;
mod lossless;
mod opened;
mod openings;
mod pinning;
mod probe;
mod questions;
mod refused;
mod rounds;
mod self_tests;
mod self_tests_authority;
mod sessions;
mod signin;
mod skills;
mod streams;
mod subscriptions;
mod support;
mod surface_vectors;
mod tls;
mod translation;
