//! The lock: a surface recorded in a file that people review.

use super::content::Surface;

/// What stands in a lock.
#[derive(Clone, Debug)]
pub struct Lock {
    /// The endpoint's URL, without its query.
    pub url: String,
    /// When it was written (RFC 3339).
    pub written: String,
    /// With what the surface was read: some endpoints list by account.
    pub authorization: Authorization,
    /// What was recorded.
    pub surface: Surface,
}

/// With what a surface was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Nothing.
    #[default]
    None,
    /// A pasted token.
    Token,
}

/// stub
#[derive(Clone, Debug)]
pub struct BadLock;

impl std::fmt::Display for BadLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stub")
    }
}

impl Lock {
    /// stub
    pub fn write(&self) -> String {
        String::new()
    }

    /// stub
    pub fn read(_text: &str, _url: &str) -> Result<Self, BadLock> {
        Err(BadLock)
    }
}

impl Authorization {
    /// Says for a person how `now` is different from this one, if it is.
    pub fn difference_from(&self, now: &Authorization) -> Option<String> {
        (self != now).then(String::new)
    }
}
