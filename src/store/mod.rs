//! Files of this program: where they live, how they are read and written.

pub mod file;
