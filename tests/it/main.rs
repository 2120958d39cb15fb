//! The real binary against strict fakes on loopback.
