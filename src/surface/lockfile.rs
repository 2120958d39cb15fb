//! The lock: a surface recorded in a file that people review. `docs/lock.md` specifies it.

use std::fmt::{self, Write as _};

use super::canon::canonical;
use super::content::{Item, Surface};
use super::declared::DeclaredHash;
use super::hash::{BadHash, Digest, SurfaceHash};
use super::layout::{push_line_break, push_lines, spelled_out};
use super::observed::Kind;
use crate::report::{is_deceptive, quoted, visible};
use crate::wire::json::{self, NotReadable, Object};

/// What stands in a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The endpoint's URL, without its query.
    pub url: String,
    /// When it was written (RFC 3339, UTC, whole seconds: `2026-07-28T12:00:00Z`).
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
    /// A sign-in.
    SignIn(SignIn),
}

/// What tells one sign-in from another. Nothing of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    /// The authorization server.
    pub issuer: String,
    /// What was granted, in any order.
    pub scopes: Vec<String>,
    /// Who, where that is known.
    pub account: Option<String>,
}

/// Why a lock is not taken. Each is worded to follow the name of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadLock {
    /// Not JSON.
    NotJson,
    /// Two versions of it that version control could not merge.
    Conflict,
    /// JSON, but no lock.
    NotALock,
    /// A member stands twice.
    Duplicate(String),
    /// Written by a newer version of this program.
    Newer(u64),
    /// Of a format or formula that this version does not know; in words.
    Unknown(String),
    /// For another endpoint.
    AnotherUrl {
        /// The one in the lock.
        recorded: String,
        /// The one of this run.
        given: String,
    },
    /// An invisible or reordering character stands as itself in that line: a reader may see something else.
    Hidden {
        /// Counted from 1.
        line: usize,
        /// Which one.
        character: char,
    },
    /// Not as it was written; in words.
    Damaged(String),
}

/// The member that makes a file a lock, and the version of the format.
const MARK: &str = "mcpHaspLock";
const VERSION: u64 = 1;
/// Characters of a name, a scope list or an issuer that are shown.
const NAME_SHOWN: usize = 80;
/// The members of a lock, all of them required.
const MEMBERS: [&str; 11] = [
    MARK,
    "url",
    "written",
    "authorization",
    "computedHash",
    "declaredHash",
    "instructions",
    "tools",
    "prompts",
    "resourceTemplates",
    "skills",
];

impl Lock {
    /// The text of the file. The same surface makes the same text, but for the time.
    pub fn write(&self) -> String {
        let mut out = format!("{{\n  \"{MARK}\": {VERSION},\n");
        let quote = |text: &str| spelled_out(&json::quote(text));
        let _ = writeln!(out, "  \"url\": {},", quote(&self.url));
        let _ = writeln!(out, "  \"written\": {},", quote(&self.written));
        let _ = writeln!(out, "  \"authorization\": {},", self.authorization.write());
        let _ = writeln!(out, "  \"computedHash\": \"{}\",", self.surface.hash());
        let declared = self.surface.declared.as_ref().map_or_else(
            || "null".to_owned(),
            |hash| {
                format!("{{\n    \"key\": {},\n    \"value\": {}\n  }}", quote(&hash.key), quote(&hash.value))
            },
        );
        let _ = write!(out, "  \"declaredHash\": {declared},\n  \"instructions\": ");
        match self.surface.instructions.as_str() {
            "null" => out.push_str("null"),
            text => {
                let _ =
                    write!(out, "{{\n    \"digest\": \"{}\",\n    \"text\": ", Digest::of(text.as_bytes()));
                push_lines(text, 2, &mut out);
                out.push_str("\n  }");
            }
        }
        for kind in Kind::ALL {
            let _ = write!(out, ",\n  \"{}\": [", kind.member());
            let items = self.surface.list(kind);
            for (at, item) in items.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let (name, digest) = (quote(&item.name), item.digest());
                let _ =
                    write!(out, "{comma}\n    {{\n      \"name\": {name},\n      \"digest\": \"{digest}\"");
                out.push_str(",\n      \"item\": ");
                push_lines(&item.text, 3, &mut out);
                out.push_str("\n    }");
            }
            if !items.is_empty() {
                push_line_break(1, &mut out);
            }
            out.push(']');
        }
        out.push_str("\n}\n");
        out
    }

    /// Reads the text of the file, for the endpoint at `url` (without its query).
    ///
    /// # Errors
    /// It is no lock, none for this endpoint, or not as it was written.
    pub fn read(text: &str, url: &str) -> Result<Self, BadLock> {
        let lock = read_root(text)?;
        // The version first: what a newer one holds is not to be called damaged.
        check_version(&lock)?;
        check_in_plain_sight(text)?;
        check_members("the lock", &lock, &MEMBERS)?;
        let recorded = string(&lock, "url")?;
        if recorded != url {
            return Err(BadLock::AnotherUrl { recorded, given: url.to_owned() });
        }
        let written = string(&lock, "written")?;
        if !is_time(&written) {
            return Err(damaged("\"written\" is no time like 2026-07-28T12:00:00Z"));
        }
        let authorization = Authorization::read(&inner(&lock, "authorization")?)?;
        let computed = read_computed(&lock)?;
        let declared = read_declared(&lock)?;
        let instructions = read_instructions(&lock)?;
        let mut items = Vec::new();
        for kind in Kind::ALL {
            read_list(kind, &lock, &mut items)?;
        }
        let surface = Surface::new(instructions, declared, items);
        check_names(&surface)?;
        if surface.hash() != computed {
            return Err(damaged("\"computedHash\" does not fit its instructions and items"));
        }
        Ok(Lock { url: recorded, written, authorization, surface })
    }
}

fn read_root(text: &str) -> Result<Object<'_>, BadLock> {
    Object::read(text.trim_matches([' ', '\t', '\n', '\r'])).map_err(|wrong| match wrong {
        NotReadable::Duplicate(name) => BadLock::Duplicate(name),
        NotReadable::Syntax if text.lines().any(|line| line.starts_with("<<<<<<< ")) => BadLock::Conflict,
        NotReadable::Syntax if json::is_json(text) => BadLock::NotALock,
        NotReadable::Syntax => BadLock::NotJson,
    })
}

fn check_version(lock: &Object<'_>) -> Result<(), BadLock> {
    let version = lock.get(MARK).ok_or(BadLock::NotALock)?;
    match version.parse::<u64>() {
        Ok(VERSION) => Ok(()),
        Ok(newer) if newer > VERSION => Err(BadLock::Newer(newer)),
        _ => Err(BadLock::Unknown(format!("format {}", visible(version, 20)))),
    }
}

/// What was written here spells out every such character; a file that has one was made to be misread.
fn check_in_plain_sight(text: &str) -> Result<(), BadLock> {
    let mut line = 1;
    for character in text.chars() {
        match character {
            '\n' => line += 1,
            '\r' | '\t' => {}
            _ if is_deceptive(character) => return Err(BadLock::Hidden { line, character }),
            _ => {}
        }
    }
    Ok(())
}

/// Every one of the members is there, and no other: what is not known would not be checked.
fn check_members(of: &str, object: &Object<'_>, known: &[&str]) -> Result<(), BadLock> {
    if let Some(stray) = object.members().find(|member| !known.contains(&member.key.as_ref())) {
        return Err(damaged(format!(
            "{of} has a member {} that this format does not know",
            quoted(&stray.key, NAME_SHOWN)
        )));
    }
    match known.iter().find(|name| object.get(name).is_none()) {
        Some(missing) => Err(damaged(format!("{of} has no \"{missing}\""))),
        None => Ok(()),
    }
}

fn read_computed(lock: &Object<'_>) -> Result<SurfaceHash, BadLock> {
    SurfaceHash::parse(&string(lock, "computedHash")?).map_err(|wrong| match wrong {
        BadHash::Formula | BadHash::Algorithm => {
            BadLock::Unknown("a formula of the hash other than hasp1:sha256".into())
        }
        wrong => damaged(format!("\"computedHash\" {wrong}")),
    })
}

fn read_declared(lock: &Object<'_>) -> Result<Option<DeclaredHash>, BadLock> {
    if lock.get("declaredHash") == Some("null") {
        return Ok(None);
    }
    let declared = inner(lock, "declaredHash")?;
    check_members("\"declaredHash\"", &declared, &["key", "value"])?;
    Ok(Some(DeclaredHash { key: string(&declared, "key")?, value: string(&declared, "value")? }))
}

fn read_instructions(lock: &Object<'_>) -> Result<String, BadLock> {
    if lock.get("instructions") == Some("null") {
        return Ok("null".to_owned());
    }
    let instructions = inner(lock, "instructions")?;
    check_members("\"instructions\"", &instructions, &["digest", "text"])?;
    read_digested("its instructions", &instructions, "text")
}

fn read_list(kind: Kind, lock: &Object<'_>, items: &mut Vec<(Kind, Item)>) -> Result<(), BadLock> {
    let list = kind.member();
    let entries = json::array_items_checked(lock.get(list).unwrap_or_default())
        .map_err(|_| damaged(format!("\"{list}\" is no array")))?;
    for (at, (entry, _)) in entries.into_iter().enumerate() {
        let place = format!("entry {} of \"{list}\"", at + 1);
        let entry = read_object(&place, entry)?;
        check_members(&place, &entry, &["name", "digest", "item"])?;
        let name = entry
            .string("name")
            .ok_or_else(|| damaged(format!("{place} has a \"name\" that is no text")))?
            .into_owned();
        let item = kind.subject(&name);
        let text = read_digested(&item, &entry, "item")?;
        let own_name = Object::read_checked(&text)
            .ok()
            .and_then(|item| item.string(kind.key()).map(|name| name.into_owned()));
        if own_name.as_ref() != Some(&name) {
            return Err(damaged(format!(
                "{item} has another \"{}\" in its item than its entry says, or none",
                kind.key()
            )));
        }
        items.push((kind, Item { name, text }));
    }
    Ok(())
}

/// A value in canonical form, which its digest must fit.
fn read_digested(what: &str, entry: &Object<'_>, member: &str) -> Result<String, BadLock> {
    let text = canonical(entry.get(member).unwrap_or_default())
        .map_err(|why| damaged(format!("{what} cannot be hashed: {}", visible(&why.to_string(), 120))))?;
    match entry.string("digest").and_then(|digest| Digest::parse(&digest)) {
        Some(digest) if digest == Digest::of(text.as_bytes()) => Ok(text),
        Some(_) => Err(damaged(format!("the digest of {what} does not fit its text"))),
        None => Err(damaged(format!("{what} has no digest like sha256: and 64 lower-case digits"))),
    }
}

/// The lists of a surface are sorted, so that equal names stand side by side.
fn check_names(surface: &Surface) -> Result<(), BadLock> {
    for kind in Kind::ALL {
        let list = surface.list(kind);
        let twice = list.iter().zip(list.iter().skip(1)).find(|(one, next)| one.name == next.name);
        if let Some((item, _)) = twice {
            return Err(damaged(format!("{} stands twice", kind.subject(&item.name))));
        }
    }
    Ok(())
}

fn read_object<'a>(what: &str, text: &'a str) -> Result<Object<'a>, BadLock> {
    Object::read_checked(text).map_err(|wrong| match wrong {
        NotReadable::Duplicate(name) => BadLock::Duplicate(name),
        NotReadable::Syntax => damaged(format!("{what} is no object")),
    })
}

fn inner<'a>(object: &Object<'a>, name: &str) -> Result<Object<'a>, BadLock> {
    read_object(&format!("\"{name}\""), object.get(name).unwrap_or_default())
}

fn string(object: &Object<'_>, name: &str) -> Result<String, BadLock> {
    object.string(name).map(|text| text.into_owned()).ok_or_else(|| damaged(format!("\"{name}\" is no text")))
}

fn damaged(what: impl Into<String>) -> BadLock {
    BadLock::Damaged(what.into())
}

/// Whether a text reads `2026-07-28T12:00:00Z`. It is for people; nothing is computed from it.
fn is_time(text: &str) -> bool {
    let shape = "0000-00-00T00:00:00Z";
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(found, shape)| match shape {
            b'0' => found.is_ascii_digit(),
            _ => found == shape,
        })
}

impl Authorization {
    /// Says for a person how `now` is different from this one, if it is.
    pub fn difference_from(&self, now: &Authorization) -> Option<String> {
        use Authorization::{None as Nothing, SignIn, Token};
        let how = match (self, now) {
            (Nothing, Nothing) | (Token, Token) => return None,
            (Nothing, Token) => "without a token and this start has one".to_owned(),
            (Nothing, SignIn(_)) => "without a sign-in and this start has one".to_owned(),
            (Token, Nothing) => "with a token and this start has none".to_owned(),
            (Token, SignIn(_)) => "with a token and this start has a sign-in".to_owned(),
            (SignIn(_), Nothing) => "with a sign-in and this start has none".to_owned(),
            (SignIn(_), Token) => "with a sign-in and this start has a token".to_owned(),
            (SignIn(then), SignIn(now)) => then.difference_from(now)?,
        };
        Some(format!("the lock was written {how}; some endpoints list by account"))
    }

    fn write(&self) -> String {
        let compact = match self {
            Authorization::None => r#"{"kind":"none"}"#.to_owned(),
            Authorization::Token => r#"{"kind":"token"}"#.to_owned(),
            Authorization::SignIn(sign_in) => {
                let scopes: Vec<String> = sign_in.sorted_scopes().into_iter().map(json::quote).collect();
                format!(
                    r#"{{"kind":"sign-in","issuer":{},"account":{},"scopes":[{}]}}"#,
                    json::quote(&sign_in.issuer),
                    sign_in.account.as_deref().map_or_else(|| "null".to_owned(), json::quote),
                    scopes.join(",")
                )
            }
        };
        let mut out = String::new();
        push_lines(&compact, 1, &mut out);
        out
    }

    fn read(object: &Object<'_>) -> Result<Self, BadLock> {
        let what = "\"authorization\"";
        let kind = string(object, "kind")?;
        match kind.as_str() {
            "none" => check_members(what, object, &["kind"]).map(|()| Authorization::None),
            "token" => check_members(what, object, &["kind"]).map(|()| Authorization::Token),
            "sign-in" => {
                check_members(what, object, &["kind", "issuer", "account", "scopes"])?;
                let account = match object.get("account") {
                    Some("null") => None,
                    _ => Some(string(object, "account")?),
                };
                let scopes = json::array_items_checked(object.get("scopes").unwrap_or_default())
                    .ok()
                    .and_then(|scopes| {
                        let texts = scopes.into_iter().map(|(scope, _)| json::decode_string(scope));
                        texts.map(|scope| scope.map(|scope| scope.into_owned())).collect::<Option<Vec<_>>>()
                    })
                    .ok_or_else(|| damaged("\"scopes\" is no array of texts"))?;
                Ok(Authorization::SignIn(SignIn { issuer: string(object, "issuer")?, scopes, account }))
            }
            other => Err(BadLock::Unknown(format!("a kind of authorization, {}", quoted(other, NAME_SHOWN)))),
        }
    }
}

impl SignIn {
    fn sorted_scopes(&self) -> Vec<&str> {
        let mut scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    fn difference_from(&self, now: &SignIn) -> Option<String> {
        if self.issuer != now.issuer {
            let (then, now) = (quoted(&self.issuer, NAME_SHOWN), quoted(&now.issuer, NAME_SHOWN));
            return Some(format!("with a sign-in at {then} and this start has one at {now}"));
        }
        if self.account != now.account {
            let named = |account: &Option<String>| {
                account.as_deref().map_or_else(
                    || "an unnamed account".to_owned(),
                    |name| format!("the account {}", quoted(name, NAME_SHOWN)),
                )
            };
            return Some(format!(
                "for {} and this start is for {}",
                named(&self.account),
                named(&now.account)
            ));
        }
        let (then, now) = (self.sorted_scopes(), now.sorted_scopes());
        let listed = |scopes: &[&str]| quoted(&scopes.join(" "), NAME_SHOWN);
        (then != now)
            .then(|| format!("with the scopes {} and this start has {}", listed(&then), listed(&now)))
    }
}

impl fmt::Display for BadLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let anew =
            "take it from version control again, or write it anew with --write-lock and review what changed";
        match self {
            BadLock::NotJson => write!(f, "is not JSON, so it was cut off or edited; {anew}"),
            BadLock::Conflict => write!(
                f,
                "has the marks of a merge that was left unfinished; choose one side whole, or write it anew with --write-lock and review what changed"
            ),
            BadLock::NotALock => write!(
                f,
                "is JSON and no lock of mcp-hasp (it has no \"{MARK}\"); name the file that --write-lock wrote"
            ),
            BadLock::Duplicate(name) => write!(
                f,
                "has the member {} twice in one place, which two readers could read differently; {anew}",
                quoted(name, NAME_SHOWN)
            ),
            BadLock::Newer(version) => write!(
                f,
                "has format {version}, and this version of mcp-hasp reads format {VERSION}; a newer one wrote it, so update mcp-hasp"
            ),
            BadLock::Unknown(what) => write!(
                f,
                "has {what}, which this version of mcp-hasp does not know; write it anew with --write-lock, or use the version that wrote it"
            ),
            BadLock::AnotherUrl { recorded, given } => write!(
                f,
                "was written for {}, and --url is {}; name the lock of this endpoint, or write one with --write-lock",
                visible(recorded, 200),
                visible(given, 200)
            ),
            BadLock::Hidden { line, character } => write!(
                f,
                "has an invisible or reordering character (U+{:04X}) in line {line}, which mcp-hasp never writes as itself, so it was edited and may not say what it seems to; {anew}",
                u32::from(*character)
            ),
            BadLock::Damaged(what) => write!(f, "is not as it was written: {}; {anew}", visible(what, 400)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const URL: &str = "https://mcp.example/mcp";

    fn item(kind: Kind, name: &str, rest: &str) -> (Kind, Item) {
        let text = canonical(&format!("{{\"{}\":{}{rest}}}", kind.key(), json::quote(name))).unwrap();
        (kind, Item { name: name.into(), text })
    }

    fn lock_of(surface: Surface) -> Lock {
        let written = "2026-07-28T12:00:00Z".into();
        Lock { url: URL.into(), written, authorization: Authorization::None, surface }
    }

    fn sample() -> Lock {
        let declared = Some(DeclaredHash { key: "x/surfaceHash".into(), value: "v1".into() });
        lock_of(Surface::new(
            "\"be\u{200b} nice\"".into(),
            declared,
            [
                item(Kind::Tools, "echo", r#","inputSchema":{"type":"object","required":[]}"#),
                item(Kind::Tools, "add", ""),
                item(Kind::Skills, "skill://s", r#","x":[1,2]"#),
            ],
        ))
    }

    const SAMPLE: &str = r#"{
  "mcpHaspLock": 1,
  "url": "https://mcp.example/mcp",
  "written": "2026-07-28T12:00:00Z",
  "authorization": {
    "kind": "none"
  },
  "computedHash": "COMPUTED",
  "declaredHash": {
    "key": "x/surfaceHash",
    "value": "v1"
  },
  "instructions": {
    "digest": "INSTRUCTIONS",
    "text": "be\u200b nice"
  },
  "tools": [
    {
      "name": "add",
      "digest": "ADD",
      "item": {
        "name": "add"
      }
    },
    {
      "name": "echo",
      "digest": "ECHO",
      "item": {
        "inputSchema": {
          "required": [],
          "type": "object"
        },
        "name": "echo"
      }
    }
  ],
  "prompts": [],
  "resourceTemplates": [],
  "skills": [
    {
      "name": "skill://s",
      "digest": "SKILL",
      "item": {
        "uri": "skill://s",
        "x": [
          1,
          2
        ]
      }
    }
  ]
}
"#;

    #[test]
    fn a_lock_has_one_member_a_line() {
        let lock = sample();
        let of = |text: &str| Digest::of(text.as_bytes()).to_string();
        let expected = SAMPLE
            .replace("COMPUTED", &lock.surface.hash().to_string())
            .replace("INSTRUCTIONS", &of("\"be\u{200b} nice\""))
            .replace("ADD", &of(r#"{"name":"add"}"#))
            .replace("ECHO", &of(r#"{"inputSchema":{"required":[],"type":"object"},"name":"echo"}"#))
            .replace("SKILL", &of(r#"{"uri":"skill://s","x":[1,2]}"#));
        assert_eq!(lock.write(), expected);
        assert_eq!(Lock::read(&expected, URL), Ok(lock));
    }

    #[test]
    fn layout_does_not_count() {
        let lock = sample();
        let text = lock.write();
        for other in [text.replace('\n', "\r\n"), text.replace("  ", "\t"), text.replace("\n", " ")] {
            assert_eq!(Lock::read(&other, URL).as_ref(), Ok(&lock));
        }
    }

    #[test]
    fn what_was_changed_by_hand_is_named() {
        let good = sample().write();
        let hash = sample().surface.hash().to_string();
        for (what, with, why) in [
            ("\"type\": \"object\"", "\"type\": \"array\"", "the digest of tool \"echo\" does not fit"),
            ("be\\u200b nice", "be nice", "the digest of its instructions does not fit"),
            (hash.as_str(), &format!("hasp1:{}", Digest::of(b"")), "\"computedHash\" does not fit"),
            (hash.as_str(), &hash.replace("sha256:", "sha256:0"), "\"computedHash\" must have 64"),
            ("\"name\": \"add\",\n", "\"name\": \"sub\",\n", "tool \"sub\" has another \"name\""),
            ("      \"name\": \"add\",\n", "", "entry 1 of \"tools\" has no \"name\""),
            ("\"name\": \"add\",\n", "\"name\": 7,\n", "entry 1 of \"tools\" has a \"name\" that is no text"),
            ("\"prompts\": []", "\"prompts\": {}", "\"prompts\" is no array"),
            ("\"prompts\": []", "\"prompts\": [7]", "entry 1 of \"prompts\" is no object"),
            ("\"prompts\": [],", "", "the lock has no \"prompts\""),
            ("\"prompts\": []", "\"prompts\": [], \"x\": 1", "the lock has a member \"x\""),
            ("\"value\": \"v1\"", "\"value\": 1", "\"value\" is no text"),
            ("T12:00:00Z", "T12:00:00+01:00", "\"written\" is no time"),
            (
                "\"kind\": \"none\"",
                "\"kind\": \"none\", \"secret\": 1",
                "\"authorization\" has a member \"secret\"",
            ),
            ("sha256:", "sha512:", "digest"),
        ] {
            let bad = match what {
                "sha256:" => good.replacen("\"digest\": \"sha256:", "\"digest\": \"sha512:", 1),
                _ => good.replacen(what, with, 1),
            };
            assert_ne!(bad, good, "{what}");
            let found = Lock::read(&bad, URL).unwrap_err();
            assert!(
                matches!(found, BadLock::Damaged(_)) && found.to_string().contains(why),
                "{what}: {found}"
            );
        }
        let twice = lock_of(Surface::new(
            "null".into(),
            None,
            [item(Kind::Tools, "a", ""), item(Kind::Tools, "a", ",\"x\":1")],
        ));
        assert_eq!(Lock::read(&twice.write(), URL), Err(damaged("tool \"a\" stands twice")));
    }

    #[test]
    fn each_other_fault_has_its_own_words() {
        let good = sample().write();
        let read = |text: &str| Lock::read(text, URL).unwrap_err();
        assert_eq!(read(""), BadLock::NotJson);
        assert_eq!(read(good.get(..good.len() / 2).unwrap()), BadLock::NotJson);
        assert_eq!(read(&format!("\u{feff}{good}")), BadLock::NotJson);
        assert_eq!(read(&good.replace("  \"url\"", "<<<<<<< ours\n  \"url\"")), BadLock::Conflict);
        assert_eq!(read("[]"), BadLock::NotALock);
        assert_eq!(read("{\"lockfileVersion\": 3}"), BadLock::NotALock);
        let version =
            |text: &str| read(&good.replace("\"mcpHaspLock\": 1", &format!("\"mcpHaspLock\": {text}")));
        assert_eq!(version("2"), BadLock::Newer(2));
        assert_eq!(version("0"), BadLock::Unknown("format 0".into()));
        assert_eq!(version("\"1\""), BadLock::Unknown("format \"1\"".into()));
        assert!(version("2, \"x\": \"\u{202e}\"").to_string().contains("update mcp-hasp"), "before all else");
        assert!(matches!(read(&good.replace("hasp1:", "hasp2:")), BadLock::Unknown(_)));
        assert!(matches!(read(&good.replace("\"none\"", "\"passkey\"")), BadLock::Unknown(_)));
        assert_eq!(read(&good.replace("\"value\"", "\"key\"")), BadLock::Duplicate("key".into()));
        assert_eq!(read(&good.replace("\"url\"", "\"url\": 1, \"url\"")), BadLock::Duplicate("url".into()));
        let hidden = read(&good.replace("be\\u200b", "be\u{200b}"));
        assert_eq!(hidden, BadLock::Hidden { line: 15, character: '\u{200b}' });
        let other = Lock::read(&good, "https://other.example/\u{202e}").unwrap_err();
        assert!(other.to_string().contains(
            "was written for https://mcp.example/mcp, and --url is https://other.example/\\u{202e};"
        ));
        assert!(!hidden.to_string().contains('\n'));
    }

    #[test]
    fn a_lock_says_with_what_it_was_read() {
        let sign_in = |issuer: &str, scopes: &[&str], account: Option<&str>| {
            let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
            Authorization::SignIn(SignIn {
                issuer: issuer.into(),
                scopes,
                account: account.map(str::to_owned),
            })
        };
        let full = sign_in("https://a.example", &["a", "b"], Some("me"));
        for authorization in [Authorization::Token, full.clone(), sign_in("i", &[], None)] {
            let lock = Lock { authorization, ..sample() };
            assert_eq!(Lock::read(&lock.write(), URL), Ok(lock));
        }
        let (none, token) = (Authorization::None, Authorization::Token);
        assert_eq!(
            none.difference_from(&token).unwrap(),
            "the lock was written without a token and this start has one; some endpoints list by account"
        );
        for (then, now, how) in [
            (&token, &none, "with a token and this start has none"),
            (&full, &token, "with a sign-in and this start has a token"),
            (&none, &full, "without a sign-in and this start has one"),
            (&full, &sign_in("x", &[], None), "at \"https://a.example\" and this start has one at \"x\""),
            (
                &full,
                &sign_in("https://a.example", &["a"], Some("me")),
                "the scopes \"a b\" and this start has \"a\"",
            ),
            (
                &full,
                &sign_in("https://a.example", &["a"], None),
                "the account \"me\" and this start is for an unnamed account",
            ),
        ] {
            assert!(then.difference_from(now).unwrap().contains(how), "{how}");
        }
        assert_eq!(full.difference_from(&sign_in("https://a.example", &["b", "a", "b"], Some("me"))), None);
    }

    fn any_text() -> impl Strategy<Value = String> {
        let odd = prop::sample::select(vec![
            '"',
            '\\',
            '\n',
            '\0',
            '\u{7f}',
            '\u{200b}',
            '\u{202e}',
            '\u{e0041}',
            '\u{10ffff}',
            'é',
        ]);
        prop::collection::vec(prop_oneof![odd, any::<char>()], 0..8).prop_map(String::from_iter)
    }

    /// JSON texts with numbers that no double holds, and strings that no reader sees.
    fn any_json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|value| value.to_string()),
            "-?[1-9][0-9]{0,40}",
            "-?[1-9][0-9]{0,3}\\.[0-9]{1,20}(e-?[0-9]{1,2})?",
            any_text().prop_map(|text| json::quote(&text)),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            let members = prop::collection::btree_map(any_text(), inner.clone(), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
                members.prop_map(|members| {
                    let members: Vec<_> = members
                        .iter()
                        .map(|(name, value)| format!("{}:{value}", json::quote(name)))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            instructions in any_json(),
            declared in prop::option::of((any_text(), any_text())),
            items in prop::collection::btree_map((0..4_usize, any_text()), any_json(), 0..8),
        ) {
            let items = items.iter().map(|((kind, name), value)| item(Kind::ALL[*kind], name, &format!(",\"x\":{value}")));
            let surface = Surface::new(
                canonical(&instructions).unwrap(),
                declared.map(|(key, value)| DeclaredHash { key, value }),
                items.collect::<Vec<_>>(),
            );
            let lock = lock_of(surface);
            let text = lock.write();
            prop_assert_eq!(text.chars().next_back(), Some('\n'));
            prop_assert_eq!(text.chars().find(|&character| character != '\n' && is_deceptive(character)), None);
            let again = Lock::read(&text, URL);
            prop_assert_eq!(again.as_ref(), Ok(&lock));
            prop_assert_eq!(again.unwrap().write(), text);
        }

        #[test]
        fn no_change_of_one_byte_makes_another_surface(at in any::<prop::sample::Index>(), byte in 0..128_u8) {
            let lock = sample();
            let mut bytes = lock.write().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(Ok(again)) = String::from_utf8(bytes).map(|text| Lock::read(&text, URL)) {
                prop_assert_eq!(again.surface.hash(), lock.surface.hash());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = Lock::read(&text, URL);
            let _ = Lock::read(&format!("{{\"{MARK}\":1,{text}}}"), URL);
        }
    }
}
