//! What the user agreed to, and the proof that what was read is that.

use std::fmt;
use std::sync::Arc;

use super::content::Surface;
use super::declared::{DeclaredHash, Departure};
use super::difference::Difference;
use super::hash::{ExpectedHash, SurfaceHash};
use super::lockfile::{Authorization, Lock};
use super::observed::Observed;
use crate::report::{Row, quoted, visible};

/// Characters of a declared hash that are shown.
const HASH_SHOWN: usize = 120;

/// What the user agreed to. Without hashes and lock: whatever is seen first.
#[derive(Debug, Default)]
pub struct Pin {
    /// The values of `--expect-hash`; each one must match.
    pub hashes: Vec<ExpectedHash>,
    /// The lock of `--lock`.
    pub lock: Option<PinnedLock>,
    /// With what this run shows itself to the endpoint: some list by account.
    pub authorization: Authorization,
}

/// A lock, and how a person finds it.
#[derive(Debug)]
pub struct PinnedLock {
    /// The name of its file.
    pub file: String,
    /// What stands in it.
    pub lock: Lock,
}

/// Proof that a surface is the pinned one, with the texts that it was read from. Made by [`Pin::verify`] alone; what is
/// served to a harness is taken from one.
///
/// ```compile_fail,E0451
/// let forged = mcp_hasp::surface::Verified { observed: unreachable!(), surface: unreachable!() };
/// ```
#[derive(Clone, Debug)]
pub struct Verified {
    observed: Arc<Observed>,
    surface: Arc<Surface>,
}

/// Why a surface is not verified.
#[derive(Clone, Debug)]
pub enum Unverified {
    /// It cannot be told what it is; in words for a person.
    Unclear(String),
    /// It is another one.
    Mismatch(Box<Mismatch>),
}

/// The surface is not the pinned one.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// By which signs.
    pub signs: Vec<Sign>,
    /// What is different, as far as the pinned one is known item by item.
    pub difference: Difference,
    /// Why it may be different though nobody changed it.
    pub hint: Option<String>,
}

/// A sign that the surface is not the pinned one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The hash that is computed here is not the one given with `--expect-hash`.
    Computed {
        /// What the user gave.
        expected: SurfaceHash,
        /// What was computed.
        found: SurfaceHash,
    },
    /// The endpoint declares another hash than the one given with `--expect-hash`, or none.
    Declared {
        /// What the user gave.
        expected: String,
        /// What it declares.
        found: Option<String>,
    },
    /// It is not clear which hash the endpoint declares.
    Unclear(String),
    /// The surface is not the one recorded in a lock.
    Lock {
        /// Its file.
        file: String,
        /// The hash computed from it.
        expected: SurfaceHash,
        /// The hash of what was read.
        found: SurfaceHash,
    },
    /// Read again in the same run, the surface is another one.
    Reread {
        /// The hash at start.
        expected: SurfaceHash,
        /// The hash now.
        found: SurfaceHash,
    },
    /// A message does not carry the hash that the endpoint declared at start.
    Message {
        /// What it belongs to.
        method: String,
        /// The pinned hash.
        expected: DeclaredHash,
        /// What it carries.
        departure: Departure,
    },
}

impl Pin {
    /// Whether anything was agreed to before the start.
    pub fn is_given(&self) -> bool {
        !self.hashes.is_empty() || self.lock.is_some()
    }

    /// By which means the surface is pinned, for a person.
    pub fn means(&self) -> String {
        let hashes = self.hashes.iter().map(|hash| match hash {
            ExpectedHash::Computed(_) => "--expect-hash (computed)".to_owned(),
            ExpectedHash::Declared(_) => "--expect-hash (declared)".to_owned(),
        });
        let lock = self.lock.iter().map(|lock| format!("the lock {}", lock.file));
        hashes.chain(lock).collect::<Vec<_>>().join(" and ")
    }

    /// Whether what was read is what the user agreed to.
    ///
    /// # Errors
    /// It is not, or it cannot be told.
    pub fn verify(&self, observed: Observed) -> Result<Verified, Unverified> {
        let surface = self.surface(&observed)?;
        self.check(&surface)?;
        Ok(Verified { observed: Arc::new(observed), surface: Arc::new(surface) })
    }

    /// The canonical form of what was read.
    ///
    /// # Errors
    /// It has none. Where the user expects something, unclear is not what it is.
    pub fn surface(&self, observed: &Observed) -> Result<Surface, Unverified> {
        Surface::of(observed).map_err(|why| match self.is_given() {
            true => Sign::Unclear(why).alone().into(),
            false => Unverified::Unclear(why),
        })
    }

    /// Whether a surface is what the user agreed to. No proof comes of it: it may only be looked at.
    ///
    /// # Errors
    /// It is another one.
    pub fn check(&self, surface: &Surface) -> Result<(), Mismatch> {
        let expected = self.hashes.iter().filter(|expected| !surface.has(expected));
        let mut signs: Vec<_> = expected.map(|expected| Sign::of_hash(expected, surface)).collect();
        let mut difference = Difference::default();
        let mut hint = None;
        if let Some(PinnedLock { file, lock }) = &self.lock {
            difference = Difference::between(&lock.surface, surface);
            if !difference.is_empty() {
                let (expected, found) = (lock.surface.hash(), surface.hash());
                signs.push(Sign::Lock { file: file.clone(), expected, found });
            }
            hint = lock.authorization.difference_from(&self.authorization);
        }
        if signs.is_empty() { Ok(()) } else { Err(Mismatch { signs, difference, hint }) }
    }
}

impl Verified {
    /// The texts that were verified.
    pub fn observed(&self) -> &Arc<Observed> {
        &self.observed
    }

    /// The same in canonical form.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Whether what was read again is still the same.
    ///
    /// # Errors
    /// It is not, or it cannot be told.
    pub fn verify_again(&self, observed: &Observed) -> Result<(), Unverified> {
        let found = match Surface::of(observed) {
            Ok(surface) => surface,
            // A declaration that was clear and is not any more is another one.
            Err(why) if self.surface.declared.is_some() && observed.declared().is_err() => {
                return Err(Sign::Unclear(why).alone().into());
            }
            Err(why) => return Err(Unverified::Unclear(why)),
        };
        let difference = Difference::between(&self.surface, &found);
        if difference.is_empty() {
            return Ok(());
        }
        let sign = Sign::Reread { expected: self.surface.hash(), found: found.hash() };
        Err(Mismatch { signs: vec![sign], difference, hint: None }.into())
    }
}

impl Sign {
    fn of_hash(expected: &ExpectedHash, surface: &Surface) -> Self {
        match expected {
            ExpectedHash::Computed(expected) => Sign::Computed { expected: *expected, found: surface.hash() },
            ExpectedHash::Declared(expected) => {
                let found = surface.declared.as_ref().map(|hash| hash.value.clone());
                Sign::Declared { expected: expected.clone(), found }
            }
        }
    }

    /// A mismatch with this sign and nothing to compare.
    pub fn alone(self) -> Mismatch {
        Mismatch { signs: vec![self], difference: Difference::default(), hint: None }
    }
}

impl From<Mismatch> for Unverified {
    fn from(mismatch: Mismatch) -> Self {
        Unverified::Mismatch(Box::new(mismatch))
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sign::Computed { expected, found } => {
                write!(f, "--expect-hash is {expected}, the surface has {found}")
            }
            Sign::Declared { expected, found: Some(found) } => {
                write!(
                    f,
                    "--expect-hash is {}, the endpoint declares {}",
                    quoted(expected, HASH_SHOWN),
                    quoted(found, HASH_SHOWN)
                )
            }
            Sign::Declared { expected, found: None } => {
                write!(f, "--expect-hash is {}, the endpoint declares no hash", quoted(expected, HASH_SHOWN))
            }
            Sign::Unclear(why) => f.write_str(why),
            Sign::Lock { file, expected, found } if expected == found => {
                write!(f, "{} was written when the endpoint declared another hash", visible(file, 200))
            }
            Sign::Lock { file, expected, found } => {
                write!(f, "{} records {expected}, the surface has {found}", visible(file, 200))
            }
            Sign::Reread { expected, found } if expected == found => {
                f.write_str("the endpoint declares another hash than at start")
            }
            Sign::Reread { expected, found } => write!(f, "it was {expected} at start and is {found} now"),
            Sign::Message { method, expected, departure } => {
                let method = visible(method, 80);
                let pinned =
                    format!("the endpoint declared {} at start", quoted(&expected.value, HASH_SHOWN));
                match departure {
                    Departure::Missing => {
                        write!(
                            f,
                            "{pinned}, and its answer to {method} has no {}",
                            quoted(&expected.key, HASH_SHOWN)
                        )
                    }
                    Departure::Differs { found } => {
                        write!(f, "{pinned}, and with {method} came {}", visible(found, 120))
                    }
                }
            }
        }
    }
}

impl Mismatch {
    /// What a user can do.
    pub fn advice(&self) -> &'static str {
        let by_lock = self.signs.iter().any(|sign| matches!(sign, Sign::Lock { .. }));
        match by_lock {
            true => "look at it with --inspect, and accept it with --write-lock if it is as it should be",
            false => "look at it with --inspect, and pin its new hash if it is as it should be",
        }
    }

    /// The difference, line by line.
    pub fn rows(&self) -> Vec<Row> {
        self.difference.rows()
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the surface is not the pinned one: ")?;
        for (at, sign) in self.signs.iter().enumerate() {
            write!(f, "{}{sign}", if at > 0 { "; " } else { "" })?;
        }
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}
