//! The proof that what was read is the file that was listed.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::front_matter;
use super::gate::{Admitted, Shape};
use super::hash::Digest;
use super::skill::ListedFile;
use super::skill_uri::SkillUri;
use crate::wire::{Era, Object, json};

/// A `resources/read` result whose file is the listed one. Made by [`VerifiedFile::check`] alone.
///
/// ```compile_fail,E0451
/// let forged = mcp_hasp::surface::VerifiedFile { result: unreachable!(), era: unreachable!() };
/// ```
#[derive(Debug)]
pub struct VerifiedFile {
    result: Bytes,
    era: Era,
}

/// Why a file is not shown, in words that quote nothing of it.
pub type BadFile = String;

impl VerifiedFile {
    /// Checks an answer of the endpoint against the listed file.
    ///
    /// # Errors
    /// It is another one, or it cannot be told.
    pub fn check(file: &ListedFile, answer: Admitted) -> Result<Self, BadFile> {
        let Shape::Complete(era) = answer.shape() else {
            return Err("the endpoint asks for input instead of sending it".into());
        };
        check(file, &answer.payload())?;
        Ok(VerifiedFile { result: answer.into_bytes(), era })
    }

    /// For tests of what is done with one.
    #[cfg(test)]
    pub(crate) fn unchecked(result: Bytes) -> Self {
        VerifiedFile { result, era: Era::Modern }
    }

    /// The result as the endpoint sent it.
    pub fn result(&self) -> &Bytes {
        &self.result
    }

    /// The era that it has the form of.
    pub fn era(&self) -> Era {
        self.era
    }
}

/// Size first, then the digest, then the front matter.
fn check(file: &ListedFile, result: &Object<'_>) -> Result<(), BadFile> {
    let contents = result.get("contents").ok_or("the answer has no contents")?;
    let contents = json::array_items(contents).map_err(|_| "the contents are no array")?;
    let [(content, _)] = contents.as_slice() else {
        return Err(format!("the answer has {} contents, not one", contents.len()));
    };
    let content = Object::read(content).map_err(|_| "the content is unreadable")?;
    // In normal form: an endpoint may spell the scheme its own way.
    let uri = content.string("uri").and_then(|uri| SkillUri::read(&uri).ok());
    if uri.is_none() || uri != SkillUri::read(&file.uri).ok() {
        return Err("the answer is about another URI".into());
    }
    let bytes = match (content.get("text"), content.get("blob")) {
        (Some(text), None) => match json::decode_string(text) {
            Some(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
            Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
            None => return Err("its text is no string".into()),
        },
        (None, Some(blob)) => {
            let blob = json::decode_string(blob).ok_or("its blob is no string")?;
            Cow::Owned(STANDARD.decode(blob.as_bytes()).map_err(|_| "its blob is not base64")?)
        }
        (Some(_), Some(_)) => return Err("it has both text and blob".into()),
        (None, None) => return Err("it has neither text nor blob".into()),
    };
    if u64::try_from(bytes.len()) != Ok(file.size) {
        return Err(format!("it has {} bytes, listed are {}", bytes.len(), file.size));
    }
    if Digest::of(&bytes) != file.digest {
        return Err("its SHA-256 digest is not the listed one".into());
    }
    if let Some(listed) = &file.front_matter {
        let text = std::str::from_utf8(&bytes).map_err(|_| "it is not UTF-8")?;
        if front_matter::read(text)? != *listed {
            return Err("its front matter is not the listed one".into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::skill::{Lookup, tests};
    use super::*;

    #[test]
    fn files_are_shown_or_refused_as_the_fixtures_say() {
        for (case, fixture) in tests::cases("file.") {
            let skills = tests::read(&fixture["skills"]);
            assert_eq!(skills.refused().next(), None, "{case}");
            let Lookup::File(file) = skills.lookup(fixture["read"].as_str().unwrap()) else {
                panic!("{case}")
            };
            let result = fixture["result"].to_string();
            let outcome = fixture["outcome"].as_str().unwrap();
            match check(file, &Object::read(&result).unwrap()) {
                Ok(()) => assert_eq!(outcome, "shown", "{case}"),
                Err(why) => assert!(outcome != "shown" && why.contains(outcome), "{case}: {why}"),
            }
        }
    }
}
