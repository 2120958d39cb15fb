//! URIs of skills and their files: one strict reading, by which they are the same, and the loosest one, by which a
//! URI may reach what another one names.

/// A URI in the one form in which two of them are compared (RFC 3986 §6.2.2): scheme and authority in lower case,
/// unreserved characters not encoded, no dot segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillUri {
    text: String,
    /// Where the last segment begins.
    last: usize,
    /// A dot segment was written with `%2e`: nobody does that who does not want to be misread.
    pub hides_dots: bool,
}

/// What is wrong with a URI, in words for a person.
pub type BadUri = &'static str;

impl SkillUri {
    /// Reads a URI that names a file.
    ///
    /// # Errors
    /// It is none, or two readers could believe two different things about where it leads.
    pub fn read(text: &str) -> Result<Self, BadUri> {
        if text.contains(['?', '#']) {
            return Err("has a query or a fragment");
        }
        if text.contains(|character| !is_uri_character(character)) {
            return Err("has a character that no URI has (RFC 3986)");
        }
        let (scheme, rest) = text.split_once("://").ok_or("has no scheme and authority (scheme://…)")?;
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            || scheme.contains(|other: char| !(other.is_ascii_alphanumeric() || "+-.".contains(other)))
        {
            return Err("has no scheme");
        }
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = rest.split_once('/').ok_or("has no path")?;
        if authority.is_empty() && scheme == SCHEME {
            return Err("has an empty first segment");
        }
        if authority.contains('@') || matches!(decoded(authority)?.as_str(), "." | "..") {
            return Err("has a first segment that can be misread");
        }
        let mut text = format!("{scheme}://{}", decoded(authority)?.to_ascii_lowercase());
        let root = text.len();
        let mut hides_dots = false;
        let mut directory = true;
        for written in path.split('/') {
            let segment = decoded(written)?;
            directory = matches!(segment.as_str(), "." | "..");
            hides_dots |= directory && segment != written;
            match segment.as_str() {
                "" => return Err("has an empty segment"),
                "." => {}
                ".." => {
                    let parent = text.rfind('/').filter(|at| *at >= root).ok_or("leads out of its root")?;
                    text.truncate(parent);
                }
                name => {
                    text.push('/');
                    text.push_str(name);
                }
            }
        }
        if directory {
            return Err("names a directory");
        }
        let last = text.rfind('/').map_or(text.len(), |slash| slash + 1);
        Ok(SkillUri { text, last, hides_dots })
    }

    /// The normalised text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The last segment.
    pub fn file_name(&self) -> &str {
        self.text.get(self.last..).unwrap_or_default()
    }

    /// Everything before the last segment, with the slash.
    pub fn folder(&self) -> &str {
        self.text.get(..self.last).unwrap_or_default()
    }

    /// The last segment of the folder, which may stand in the place of the authority; fully decoded.
    pub fn folder_name(&self) -> Option<String> {
        let folder = self.folder().strip_suffix('/')?;
        let name = folder.rsplit_once('/')?.1;
        String::from_utf8(percent_decoded(name)).ok()
    }
}

/// The scheme that belongs to skills.
pub const SCHEME: &str = "skill";

/// RFC 3986 §2: reserved, unreserved and `%`.
fn is_uri_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(character)
}

/// Decodes what does not have to be encoded, and writes the rest in upper case.
fn decoded(segment: &str) -> Result<String, BadUri> {
    let mut out = String::with_capacity(segment.len());
    let mut characters = segment.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let mut digit = || characters.next().and_then(|digit| digit.to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err("has a broken percent-encoding") };
        let byte = u8::try_from(high << 4 | low).unwrap_or_default();
        match byte {
            b'/' | b'\\' => return Err("has an encoded slash"),
            0..=0x1f | 0x7f => return Err("has an encoded control character"),
            b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let encoded = match (byte, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        out.push(encoded.unwrap_or(byte));
        rest = if encoded.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Where a URI may lead at a server that decodes too often, takes a backslash for a slash, or does not look at case.
/// Used to refuse, never to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Scheme, host, segments.
    steps: Vec<String>,
}

/// How often an encoding may be encoded again.
const ROUNDS: usize = 8;

impl Reach {
    /// Of any text. `None` where it cannot be told.
    pub fn of(text: &str) -> Option<Self> {
        let end = text.find(['?', '#']).unwrap_or(text.len());
        let mut text: String = text.get(..end)?.to_owned();
        for round in 0.. {
            let again = String::from_utf8(percent_decoded(&text)).ok()?;
            if again == text {
                break;
            }
            if round == ROUNDS {
                return None;
            }
            text = again;
        }
        let text = text.replace('\\', "/").to_lowercase();
        let text: String = text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
        let (scheme, rest) = text.split_once(':')?;
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => ("", rest),
        };
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
            _ => host,
        };
        let mut segments = Vec::new();
        for segment in path.split('/') {
            match segment.split(';').next().unwrap_or_default() {
                "" | "." => {}
                ".." => drop(segments.pop()),
                name => segments.push(name.to_owned()),
            }
        }
        let mut steps = vec![scheme.to_owned()];
        // What a file stands on is this machine, however it is called; elsewhere a missing host is the next segment.
        if scheme != "file" && !host.is_empty() {
            steps.push(host.trim_end_matches('.').to_owned());
        }
        steps.extend(segments);
        Some(Reach { steps })
    }

    /// The folder that holds it.
    #[must_use]
    pub fn folder(mut self) -> Self {
        self.steps.pop();
        self
    }

    /// Whether it is that folder or in it.
    pub fn is_within(&self, folder: &Reach) -> bool {
        self.steps.starts_with(&folder.steps)
    }

    /// How deep it lies.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// The scheme.
    pub fn scheme(&self) -> &str {
        self.steps.first().map(String::as_str).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_uri_are_one() {
        for (written, normal) in [
            ("skill://Arena/scout/SKILL.md", "skill://arena/scout/SKILL.md"),
            ("SKILL://arena/scout/%53KILL.md", "skill://arena/scout/SKILL.md"),
            ("skill://arena/./scout/x/../SKILL.md", "skill://arena/scout/SKILL.md"),
            ("skill://arena/s%63out/%7e/%c3%a9.md", "skill://arena/scout/~/%C3%A9.md"),
            ("https://X:8080/skills/a/SKILL.md", "https://x:8080/skills/a/SKILL.md"),
            ("file:///skills/a/SKILL.md", "file:///skills/a/SKILL.md"),
            ("skill://scout/SKILL.md", "skill://scout/SKILL.md"),
        ] {
            assert_eq!(SkillUri::read(written).unwrap().as_str(), normal, "{written}");
        }
        assert!(SkillUri::read("skill://a/b/%2e%2e/c").unwrap().hides_dots);
        assert!(!SkillUri::read("skill://a/b/../c").unwrap().hides_dots);
    }

    #[test]
    fn what_can_be_misread_is_no_uri_of_a_file() {
        for (text, why) in [
            ("skill://a/b?x", "query"),
            ("skill://a/b#x", "query"),
            ("skill://a/b c", "character"),
            ("skill://a/b\\c", "character"),
            ("skill://a/é", "character"),
            ("skill:a/b", "no scheme and"),
            ("//a/b", "no scheme"),
            ("1x://a/b", "no scheme"),
            ("skill:///a/b", "empty first"),
            ("skill://../b", "misread"),
            ("skill://%2e%2e/b", "misread"),
            ("https://u@x/b", "misread"),
            ("skill://a", "no path"),
            ("skill://a/", "empty segment"),
            ("skill://a//b", "empty segment"),
            ("skill://a/b/", "empty segment"),
            ("skill://a/b/.", "directory"),
            ("skill://a/b/..", "directory"),
            ("skill://a/../b", "out of its root"),
            ("skill://a/b/../../c", "out of its root"),
            ("skill://a/b%2Fc", "encoded slash"),
            ("skill://a/b%5cc", "encoded slash"),
            ("skill://a%2fb/c", "encoded slash"),
            ("skill://a/b%00", "control"),
            ("skill://a/b%0A", "control"),
            ("skill://a/b%", "broken"),
            ("skill://a/b%2", "broken"),
            ("skill://a/b%zz", "broken"),
        ] {
            let found = SkillUri::read(text).unwrap_err();
            assert!(found.contains(why), "{text}: {found}");
        }
    }

    #[test]
    fn folders_and_names_are_told() {
        let uri = SkillUri::read("skill://arena/scout/refs/a.md").unwrap();
        assert_eq!((uri.folder(), uri.file_name()), ("skill://arena/scout/refs/", "a.md"));
        assert_eq!(uri.folder_name().as_deref(), Some("refs"));
        assert_eq!(SkillUri::read("skill://scout/SKILL.md").unwrap().folder_name().as_deref(), Some("scout"));
        assert_eq!(SkillUri::read("skill://a/%C3%A9/x").unwrap().folder_name().as_deref(), Some("é"));
        assert_eq!(SkillUri::read("file:///SKILL.md").unwrap().folder_name().as_deref(), Some(""));
    }

    #[test]
    fn tricks_reach_the_folder_that_they_aim_at() {
        let folder = Reach::of("https://x/skills/scout/SKILL.md").unwrap().folder();
        for text in [
            "https://x/skills/scout",
            "https://x/skills/scout/",
            "https://x/skills/scout/secret.md?x#y",
            "HTTPS://X:443/skills/SCOUT/a",
            "https://u:p@x./skills/scout/a",
            "https:/x/skills/scout/a",
            "https:x/skills/scout/a",
            "https://x//skills/./scout/a",
            "https://x/o/../skills/scout/a",
            "https://x/../skills/scout/a",
            "https://x/o/..;v=1/skills/scout/a",
            "https://x/skills%2Fscout%2fa",
            "https://x/skills%252Fscout/a",
            "https://x/skills\\scout\\a",
            "https://x/skills%5Cscout/a",
            "https://x/o/%2e%2e/skills/scout/a",
            "https://x/sk\till\ns/scout/a",
            "ht%74ps://x/skills/scout/a",
        ] {
            assert!(Reach::of(text).unwrap().is_within(&folder), "{text}");
        }
        for text in [
            "https://x/skills",
            "https://x/skills/scouts/a",
            "https://y/skills/scout/a",
            "http://x/skills/scout/a",
        ] {
            assert!(!Reach::of(text).unwrap().is_within(&folder), "{text}");
        }
        let local = Reach::of("file:///s/scout/SKILL.md").unwrap().folder();
        for text in ["file:/s/scout/a", "file://localhost/s/scout/a", "file:////s/scout/a"] {
            assert!(Reach::of(text).unwrap().is_within(&local), "{text}");
        }
        assert_eq!(Reach::of("https://x/%ff"), None);
        assert_eq!(Reach::of("no scheme"), None);
    }

    proptest! {
        #[test]
        fn the_normal_form_is_its_own_normal_form(text in "(skill|https)://[a-c.]{1,3}(/[a-c.%2eF]{1,6}){1,4}") {
            if let Ok(uri) = SkillUri::read(&text) {
                let again = SkillUri::read(uri.as_str()).unwrap();
                prop_assert_eq!(again.as_str(), uri.as_str());
                prop_assert!(!uri.as_str().contains("/../") && !uri.as_str().contains("/./"));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = (SkillUri::read(&text), Reach::of(&text));
        }
    }
}
