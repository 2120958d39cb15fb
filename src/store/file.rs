//! Reading and writing whole files.
