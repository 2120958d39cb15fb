//! The skills of an endpoint (SEP-2640): which entries can be used, and what a URI is among their files.
//!
//! An entry is usable as a whole or not at all. Nothing is fetched to tell. A skill may lie in the folder of another
//! one, which then lists its files too; where two entries list one file they have to agree, or both are refused.

use std::collections::{HashMap, HashSet};

use super::canon::canonical;
use super::hash::Digest;
use super::skill_uri::{Reach, SCHEME, SkillUri};
use crate::report::quoted;
use crate::wire::{Object, json};

/// Files of one skill that every host accepts; more are refused.
const MAX_FILES: usize = 512;
/// Bytes of one skill that every host accepts; more are refused.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The file that a skill begins with.
const MAIN_FILE: &str = "SKILL.md";

/// All skills that an endpoint lists.
#[derive(Debug, Default)]
pub struct Skills {
    all: Vec<Skill>,
    /// By normalised URI; only those of usable skills.
    files: HashMap<String, ListedFile>,
}

#[derive(Debug)]
struct Skill {
    /// As it is listed.
    uri: String,
    /// The normalised folder, with its slash.
    folder: Option<String>,
    /// The folder as the loosest reader sees it.
    reach: Option<Reach>,
    refused: Option<String>,
}

/// A file as an entry lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its URI, as listed: the one to ask the endpoint for.
    pub uri: String,
    /// What its bytes hash to.
    pub digest: Digest,
    /// How many there are.
    pub size: u64,
    /// For a `SKILL.md` with an entry of its own: the listed front matter in canonical form.
    pub front_matter: Option<String>,
}

/// What a URI is among the files of skills.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<'s> {
    /// No matter of skills.
    NotASkillFile,
    /// A file of a usable skill.
    File(&'s ListedFile),
    /// In a skill's folder, or of the scheme that belongs to skills, and not listed.
    Unlisted {
        /// The skill in whose folder it is.
        skill: Option<&'s str>,
    },
    /// In the folder of a skill that is refused.
    RefusedSkill {
        /// The URI of the skill.
        skill: &'s str,
        /// Why it is refused.
        why: &'s str,
    },
}

/// What a URI is among the skills themselves.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'s> {
    /// A skill that can be used, by its listed URI.
    Skill(&'s str),
    /// A skill that is refused, and why.
    Refused(&'s str),
    /// No listed skill.
    Unknown,
}

impl Skills {
    /// Reads entries, given with their `uri`.
    pub fn read<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Vec::new();
        let mut usable = Vec::new();
        for (uri, entry) in entries {
            let place = SkillUri::read(uri);
            let files = match &place {
                Ok(place) => read_entry(place, uri, entry),
                Err(why) => Err(format!("its uri {why}")),
            };
            let skill = Skill {
                uri: uri.to_owned(),
                folder: place.ok().map(|place| place.folder().to_owned()),
                reach: Reach::of(uri).map(Reach::folder),
                refused: files.as_ref().err().cloned(),
            };
            usable.extend(files.ok().map(|files| (all.len(), files)));
            all.push(skill);
        }
        refuse_twins(&mut all);
        refuse_disagreements(&mut all, &usable);
        let mut files = HashMap::new();
        for (at, listed) in usable {
            if all.get(at).is_some_and(|skill| skill.refused.is_none()) {
                for (place, file) in listed {
                    // Of two that agree the one that says more: the entry of a SKILL.md knows its front matter.
                    if file.front_matter.is_some() || !files.contains_key(&place) {
                        files.insert(place, file);
                    }
                }
            }
        }
        Skills { all, files }
    }

    /// The skills that cannot be used, and why, in words for a person.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().filter_map(|skill| Some((skill.uri.as_str(), skill.refused.as_deref()?)))
    }

    /// What a URI, in any spelling, is among the skills themselves.
    pub fn find(&self, uri: &str) -> Found<'_> {
        let place = SkillUri::read(uri).ok();
        let named = |skill: &&Skill| {
            let place = place.as_ref().filter(|place| place.file_name() == MAIN_FILE);
            skill.uri == uri || place.is_some_and(|place| skill.folder.as_deref() == Some(place.folder()))
        };
        match self.all.iter().find(named) {
            Some(Skill { refused: Some(why), .. }) => Found::Refused(why),
            Some(skill) => Found::Skill(&skill.uri),
            None => Found::Unknown,
        }
    }

    /// What a URI, in any spelling, is among their files.
    pub fn lookup(&self, uri: &str) -> Lookup<'_> {
        if let Ok(place) = SkillUri::read(uri)
            && let Some(file) = self.files.get(place.as_str())
        {
            let folder =
                |skill: &&Skill| skill.folder.as_ref().is_some_and(|f| place.as_str().starts_with(f));
            // A file of a refused skill is not to be had through the skill around it.
            return match innermost(self.all.iter().filter(folder)) {
                Some(Skill { uri, refused: Some(why), .. }) => Lookup::RefusedSkill { skill: uri, why },
                _ => Lookup::File(file),
            };
        }
        let Some(reach) = Reach::of(uri) else {
            let scheme = uri.split_once(':').map(|(scheme, _)| scheme.trim().to_ascii_lowercase());
            let shared = |known: &str| scheme.as_deref() == Some(known);
            let reaches = |skill: &Skill| skill.reach.as_ref().is_none_or(|reach| shared(reach.scheme()));
            return match shared(SCHEME) || self.all.iter().any(reaches) {
                true => Lookup::Unlisted { skill: None },
                false => Lookup::NotASkillFile,
            };
        };
        let around = |skill: &&Skill| skill.reach.as_ref().is_some_and(|folder| reach.is_within(folder));
        match innermost(self.all.iter().filter(around)) {
            Some(Skill { uri, refused: Some(why), .. }) => Lookup::RefusedSkill { skill: uri, why },
            Some(skill) => Lookup::Unlisted { skill: Some(&skill.uri) },
            None if reach.scheme() == SCHEME => Lookup::Unlisted { skill: None },
            None => Lookup::NotASkillFile,
        }
    }
}

fn innermost<'s>(around: impl Iterator<Item = &'s Skill>) -> Option<&'s Skill> {
    around.max_by_key(|skill| skill.reach.as_ref().map_or(0, Reach::depth))
}

/// The listed files of an entry by their normalised URIs, or why it cannot be used.
fn read_entry(place: &SkillUri, uri: &str, entry: &str) -> Result<Vec<(String, ListedFile)>, String> {
    if !uri.ends_with("/SKILL.md") || place.file_name() != MAIN_FILE {
        return Err("its uri does not end in /SKILL.md".into());
    }
    if place.hides_dots {
        return Err("its uri has encoded dots".into());
    }
    let entry = Object::read(entry).map_err(|_| "its entry is unreadable")?;
    let front_matter = read_front_matter(&entry, place)?;
    let resources = match entry.get("resources") {
        None => return Err("it has no resources".into()),
        Some(text) if json::decode_string(text).as_deref() == Some("dynamic") => {
            return Err("its files are \"dynamic\": without digests they cannot be checked".into());
        }
        Some(text) => json::array_items(text).map_err(|_| "its resources are no array")?,
    };
    if resources.len() > MAX_FILES {
        return Err(format!("it has {} files, more than {MAX_FILES}", resources.len()));
    }
    let mut files = Vec::with_capacity(resources.len());
    let mut seen = HashSet::with_capacity(resources.len());
    let mut bytes = 0_u64;
    for (text, _) in resources {
        let (at, mut file) = read_file(text, place)?;
        bytes = bytes.saturating_add(file.size);
        if at == *place {
            if file.uri != uri {
                return Err("its SKILL.md is listed in another spelling than its uri".into());
            }
            file.front_matter = Some(front_matter.clone());
        }
        if !seen.insert(at.as_str().to_owned()) {
            return Err(format!("its file {} is listed twice", shown(&file.uri)));
        }
        files.push((at.as_str().to_owned(), file));
    }
    if !seen.contains(place.as_str()) {
        return Err("its own SKILL.md is not among its files".into());
    }
    if bytes > MAX_BYTES {
        return Err(format!("its files have more than {MAX_BYTES} bytes"));
    }
    Ok(files)
}

/// The front matter of an entry in canonical form.
fn read_front_matter(entry: &Object<'_>, place: &SkillUri) -> Result<String, String> {
    let text = entry.get("frontmatter").ok_or("it has no frontmatter")?;
    let object = Object::read(text).map_err(|_| "its frontmatter is no object")?;
    let name = object.string("name").ok_or("its frontmatter has no name")?;
    if object.string("description").is_none() {
        return Err("its frontmatter has no description".into());
    }
    if !is_name(&name) {
        return Err(
            "its name is not made of 1 to 64 lower-case letters, digits and single hyphens between them"
                .into(),
        );
    }
    if place.folder_name().as_deref() != Some(&*name) {
        return Err("its name is not that of its folder".into());
    }
    canonical(text).map_err(|_| "its frontmatter has no canonical form".into())
}

/// Letters of scripts without case count as lower case. Nothing is normalised (NFKC): a name that would need it differs
/// from its folder, or has a character that is no letter.
fn is_name(name: &str) -> bool {
    let letter = |c: char| c == '-' || (c.is_alphanumeric() && c.to_lowercase().eq([c]));
    name.chars().count() <= 64 && name.chars().all(letter) && name.split('-').all(|part| !part.is_empty())
}

fn read_file(text: &str, skill: &SkillUri) -> Result<(SkillUri, ListedFile), String> {
    let resource = Object::read(text).map_err(|_| "one of its files is no readable object")?;
    let uri = resource.string("uri").ok_or("one of its files has no uri")?;
    let wrong = |why: &str| format!("its file {} {why}", shown(&uri));
    let place = SkillUri::read(&uri).map_err(wrong)?;
    if place.hides_dots {
        return Err(wrong("has encoded dots"));
    }
    if !place.as_str().starts_with(skill.folder()) {
        return Err(wrong("is outside its folder"));
    }
    let digest = resource.string("digest").and_then(|digest| Digest::parse(&digest));
    let digest = digest.ok_or_else(|| wrong("has no digest sha256: with 64 lower-case digits"))?;
    let size = resource.get("size").ok_or_else(|| wrong("has no size"))?;
    if !size.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong("has a size that is no non-negative integer"));
    }
    // Digits that no u64 holds are far beyond the bound on a skill.
    let size = size.parse().unwrap_or(u64::MAX);
    Ok((place, ListedFile { uri: uri.into_owned(), digest, size, front_matter: None }))
}

/// Two entries that mean one skill.
fn refuse_twins(all: &mut [Skill]) {
    let mut times: HashMap<String, u32> = HashMap::new();
    for skill in all.iter() {
        skill.folder.iter().for_each(|folder| *times.entry(folder.clone()).or_default() += 1);
    }
    for skill in all {
        let twin = skill.folder.as_ref().and_then(|folder| times.get(folder)).is_some_and(|count| *count > 1);
        if twin {
            skill.refused.get_or_insert_with(|| "another entry has the same uri".into());
        }
    }
}

/// Two entries that list one file differently.
fn refuse_disagreements(all: &mut [Skill], usable: &[(usize, Vec<(String, ListedFile)>)]) {
    let mut listed: HashMap<&str, Vec<(usize, &ListedFile)>> = HashMap::new();
    for (at, files) in usable {
        files.iter().for_each(|(place, file)| listed.entry(place).or_default().push((*at, file)));
    }
    for entries in listed.into_values() {
        let Some(((_, first), others)) = entries.split_first() else { continue };
        if others.iter().any(|(_, file)| (file.digest, file.size) != (first.digest, first.size)) {
            for (at, file) in entries {
                let why = || format!("its file {} is listed differently by another skill", shown(&file.uri));
                if let Some(skill) = all.get_mut(at) {
                    skill.refused.get_or_insert_with(why);
                }
            }
        }
    }
}

fn shown(uri: &str) -> String {
    quoted(uri, 120)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The cases of a kind in `fixtures/skills/`.
    pub(in crate::surface) fn cases(kind: &str) -> Vec<(String, Value)> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/skills");
        let mut cases = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.starts_with(kind) && name.ends_with(".json") {
                cases.push((name, serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()));
            }
        }
        assert!(cases.len() > 3, "{kind}: {}", cases.len());
        cases
    }

    pub(in crate::surface) fn read(entries: &Value) -> Skills {
        let texts: Vec<_> = entries
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (entry["uri"].as_str().unwrap().to_owned(), entry.to_string()))
            .collect();
        Skills::read(texts.iter().map(|(uri, text)| (uri.as_str(), text.as_str())))
    }

    #[test]
    fn entries_are_used_or_refused_as_the_fixtures_say() {
        for (case, fixture) in cases("entry.") {
            let skills = read(&fixture["skills"]);
            let refused: HashMap<_, _> = skills.refused().collect();
            let outcomes = fixture["outcome"].as_object().unwrap();
            for (uri, outcome) in outcomes {
                let outcome = outcome.as_str().unwrap();
                match refused.get(uri.as_str()) {
                    None => assert_eq!(outcome, "usable", "{case}: {uri}"),
                    Some(why) => {
                        assert!(outcome != "usable" && why.contains(outcome), "{case}: {uri}: {why}")
                    }
                }
            }
            assert!(refused.keys().all(|uri| outcomes.contains_key(*uri)), "{case}: {refused:?}");
            for (uri, expected) in fixture["reads"].as_object().into_iter().flatten() {
                let found = match skills.lookup(uri) {
                    Lookup::File(file) => format!("file {}", file.uri),
                    Lookup::Unlisted { .. } => "unlisted".into(),
                    Lookup::RefusedSkill { .. } => "refused skill".into(),
                    Lookup::NotASkillFile => "not a skill file".into(),
                };
                assert_eq!(expected, &found, "{case}: {uri}");
            }
        }
    }

    fn entry(files: usize, size: u64) -> Value {
        let digest = Digest::of(b"").to_string();
        let name = |at: usize| if at == 0 { "SKILL.md".into() } else { format!("{at}.md") };
        let files: Vec<_> = (0..files)
            .map(|at| json!({"uri":format!("skill://a/b/{}", name(at)),"digest":digest,"size":size}))
            .collect();
        json!([{"uri":"skill://a/b/SKILL.md","frontmatter":{"name":"b","description":""},"resources":files}])
    }

    fn why(entries: &Value) -> Option<String> {
        read(entries).refused().next().map(|(_, why)| why.to_owned())
    }

    #[test]
    fn a_skill_has_512_files_and_16_mebibytes_at_most() {
        assert_eq!(why(&entry(512, 32768)), None);
        assert!(why(&entry(513, 1)).unwrap().contains("513 files"));
        assert!(why(&entry(512, 32769)).unwrap().contains("more than 16777216 bytes"));
        assert!(why(&entry(2, u64::MAX)).unwrap().contains("more than 16777216 bytes"));
    }

    #[test]
    fn a_name_is_made_of_lower_case_letters_digits_and_single_hyphens() {
        for name in ["a", "a1", "a-b-c", "1", "技能", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "A", "aB", "-a", "a-", "a--b", "a_b", "a b", "é\u{301}", "ǅ", &"x".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn reasons_show_nothing_that_could_fool_a_reader() {
        let mut entries = entry(2, 1);
        entries[0]["resources"][1]["uri"] = json!("skill://a/c/\u{202e}x");
        let why = why(&entries).unwrap();
        assert!(why.contains("\\u{202e}") && !why.contains('\u{202e}'), "{why}");
    }

    #[test]
    fn a_skill_is_found_by_any_spelling_of_its_uri() {
        let skills = read(&entry(2, 1));
        let listed = "skill://a/b/SKILL.md";
        for uri in [listed, "SKILL://A/b/SKILL.md", "skill://a/./b/SKILL.md"] {
            assert_eq!(skills.find(uri), Found::Skill(listed), "{uri}");
        }
        for uri in
            ["skill://a/b/1.md", "skill://a/SKILL.md", "skill://a/b/SKILL.md#x", "", "skill://a/B/SKILL.md"]
        {
            assert_eq!(skills.find(uri), Found::Unknown, "{uri}");
        }
    }
}
