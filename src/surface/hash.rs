//! Digests, the hash that is computed here, and the hashes that a user expects.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest (FIPS 180-4). Shown as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// Of these pieces, one after the other.
    pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hasher = Sha256::new();
        pieces.into_iter().for_each(|piece| hasher.update(piece));
        Digest(hasher.finalize().into())
    }

    /// Reads `sha256:` and 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let [high, low] = pair else { return None };
            *byte = value(*high)? << 4 | value(*low)?;
        }
        Some(Digest(bytes))
    }
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The hash that is computed here. The prefix names the version of the formula (`docs/surface-hash.md`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SurfaceHash(pub Digest);

/// The version of the formula, as a prefix.
const FORMULA: &str = "hasp1:";

impl SurfaceHash {
    /// Reads `hasp1:sha256:` and 64 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadHash> {
        let Some(digest) = text.strip_prefix(FORMULA) else { return Err(BadHash::Formula) };
        let Some(digits) = digest.strip_prefix("sha256:") else { return Err(BadHash::Algorithm) };
        Digest::parse(digest).map(SurfaceHash).ok_or(
            match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                true if digits.len() == 64 => BadHash::Capitals,
                true => BadHash::Length(digits.len()),
                false => BadHash::Digits,
            },
        )
    }
}

impl fmt::Display for SurfaceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORMULA}{}", self.0)
    }
}

impl fmt::Debug for SurfaceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A hash that the user gave with `--expect-hash`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedHash {
    /// The one that is computed here.
    Computed(SurfaceHash),
    /// The one that the endpoint declares.
    Declared(String),
}

/// What is wrong with the text of an expected hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHash {
    /// Nothing in it.
    Empty,
    /// Made by another formula.
    Formula,
    /// Not SHA-256.
    Algorithm,
    /// Capital letters.
    Capitals,
    /// Not 64 digits.
    Length(usize),
    /// Not hexadecimal.
    Digits,
}

impl ExpectedHash {
    /// Reads a value of `--expect-hash`: `hasp` with digits and a colon is always ours, any other text the endpoint's.
    ///
    /// # Errors
    /// It looks like one of ours, and is none that this version knows.
    pub fn parse(text: &str) -> Result<Self, BadHash> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadHash::Empty);
        }
        let version =
            text.strip_prefix("hasp").and_then(|rest| rest.split_once(':')).map(|(version, _)| version);
        match version {
            Some(version) if !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit()) => {
                SurfaceHash::parse(text).map(ExpectedHash::Computed)
            }
            _ => Ok(ExpectedHash::Declared(text.to_owned())),
        }
    }
}

impl fmt::Display for BadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadHash::Empty => f.write_str("is empty"),
            BadHash::Formula => f.write_str(
                "was made by another version of the formula than hasp1, the one this version knows; make it anew with --inspect",
            ),
            BadHash::Algorithm => f.write_str("must read hasp1:sha256: and 64 digits; hasp1 knows no other algorithm"),
            BadHash::Capitals => f.write_str("must be in lower-case letters"),
            BadHash::Length(found) => write!(f, "must have 64 hexadecimal digits and has {found}"),
            BadHash::Digits => f.write_str("has a character that is no hexadecimal digit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_is_written_and_read() {
        assert_eq!(Digest::of(b"abc").to_string(), ABC);
        assert_eq!(Digest::of_pieces(["a", "", "bc"]), Digest::of(b"abc"));
        assert_eq!(Digest::parse(ABC), Some(Digest::of(b"abc")));
        for bad in [
            "",
            "sha256:",
            &ABC.to_uppercase(),
            ABC.get(..70).unwrap(),
            &format!("{ABC}0"),
            &ABC.replace("ba", "bé"),
        ] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn ours_and_the_endpoints_hashes_are_told_apart() {
        let ours = format!("hasp1:{ABC}");
        assert_eq!(
            ExpectedHash::parse(&format!(" {ours}\n")),
            Ok(ExpectedHash::Computed(SurfaceHash(Digest::of(b"abc"))))
        );
        for declared in ["9f2c", "sha256:ff", "hasp:x", "haspx1:y", "hasp", "HASP1:x", "hasp1"] {
            assert_eq!(ExpectedHash::parse(declared), Ok(ExpectedHash::Declared(declared.into())));
        }
        let capitals = ours.replace("ba", "BA");
        let short = ours.get(..76).unwrap();
        let no_hex = ours.replace("ba", "xy");
        for (bad, why) in [
            ("", BadHash::Empty),
            ("hasp2:sha256:00", BadHash::Formula),
            ("hasp01:sha256:00", BadHash::Formula),
            ("hasp1:sha512:00", BadHash::Algorithm),
            ("hasp1:", BadHash::Algorithm),
            (&capitals, BadHash::Capitals),
            (short, BadHash::Length(63)),
            (&no_hex, BadHash::Digits),
        ] {
            assert_eq!(ExpectedHash::parse(bad), Err(why), "{bad}");
        }
    }
}
