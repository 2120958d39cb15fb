//! The text of `oauth.json`: every sign-in under the URL of its endpoint.
//!
//! Only what is asked for is looked into. The record of another endpoint, and what a later release may add, pass as they
//! stand.

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::record::Record;

/// Says what the file is.
const FORMAT: &str = "mcp-hasp sign-ins";
/// Of the format. A change that this release would misread has a higher one.
const VERSION: u64 = 1;

/// The sign-ins as they stand in a text, and with the changes that were made.
#[derive(Default)]
pub(super) struct SignIns<'a> {
    entries: BTreeMap<String, Entry<'a>>,
    /// Members beside the known ones.
    others: BTreeMap<String, &'a RawValue>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Kept(&'a RawValue),
    New(Box<Record>),
}

/// Why a text is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It is not what was once written; what it looks like.
    Damaged(&'static str),
    /// It has a higher version.
    Newer(u64),
}

/// A record that is not one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl<'a> SignIns<'a> {
    /// Takes a text apart.
    pub(super) fn parse(text: &'a str) -> Result<Self, Unusable> {
        if text.trim().is_empty() {
            return Err(Unusable::Damaged("it is empty"));
        }
        let mut others: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|wrong| match wrong.classify() {
                Category::Eof => Unusable::Damaged("it is cut off"),
                Category::Data => Unusable::Damaged(OTHER),
                Category::Syntax | Category::Io => Unusable::Damaged("it is not JSON"),
            })?;
        if take::<String>(&mut others, "format")? != FORMAT {
            return Err(Unusable::Damaged(OTHER));
        }
        match take(&mut others, "version")? {
            VERSION => {}
            0 => return Err(Unusable::Damaged(OTHER)),
            newer => return Err(Unusable::Newer(newer)),
        }
        let entries: BTreeMap<String, &RawValue> = take(&mut others, "sign_ins")?;
        let entries = entries.into_iter().map(|(url, text)| (url, Entry::Kept(text))).collect();
        Ok(SignIns { entries, others })
    }

    /// The sign-in at a URL.
    pub(super) fn get(&self, url: &str) -> Option<Result<Record, Unreadable>> {
        self.entries.get(url).map(Entry::read)
    }

    /// All of them by URL, and how many there are that cannot be read.
    pub(super) fn all(&self) -> (Vec<(String, Record)>, usize) {
        let read = |(url, entry): (&String, &Entry<'_>)| Some((url.clone(), entry.read().ok()?));
        let found: Vec<_> = self.entries.iter().filter_map(read).collect();
        let unreadable = self.entries.len().saturating_sub(found.len());
        (found, unreadable)
    }

    /// Stores one in place of what was there.
    pub(super) fn put(&mut self, url: &str, record: &Record) {
        self.entries.insert(url.to_owned(), Entry::New(Box::new(record.clone())));
    }

    /// Whether there was one.
    pub(super) fn remove(&mut self, url: &str) -> bool {
        self.entries.remove(url).is_some()
    }

    /// Removes one that is there and cannot be read, and says whether that was so. Others are none of the caller's
    /// business: another release may be able to read them.
    pub(super) fn remove_unreadable(&mut self, url: &str) -> bool {
        matches!(self.get(url), Some(Err(Unreadable))) && self.remove(url)
    }
}

/// Of a text that is JSON.
const OTHER: &str = "it is no list of sign-ins";

fn take<'a, T: Deserialize<'a>>(
    members: &mut BTreeMap<String, &'a RawValue>,
    name: &str,
) -> Result<T, Unusable> {
    let member = members.remove(name).ok_or(Unusable::Damaged(OTHER))?;
    serde_json::from_str(member.get()).map_err(|_| Unusable::Damaged(OTHER))
}

impl Entry<'_> {
    // The words of the parser are dropped: it quotes what it did not expect.
    fn read(&self) -> Result<Record, Unreadable> {
        match self {
            Entry::Kept(text) => serde_json::from_str(text.get()).map_err(|_| Unreadable),
            Entry::New(record) => Ok(Record::clone(record)),
        }
    }
}

impl Serialize for SignIns<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut members = out.serialize_map(None)?;
        members.serialize_entry("format", FORMAT)?;
        members.serialize_entry("version", &VERSION)?;
        members.serialize_entry("sign_ins", &self.entries)?;
        for (name, text) in &self.others {
            members.serialize_entry(name, text)?;
        }
        members.end()
    }
}
