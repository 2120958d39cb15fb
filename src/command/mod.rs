//! Which command, and how its rooms are wired.

pub mod serve;
