//! The surface hash: the vectors of `fixtures/surface/`, and what must hold for any surface.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use mcp_hasp::surface::{Kind, List, Observed, Surface};
use mcp_hasp::wire::{self, Era, Malformed};
use proptest::prelude::*;
use serde_json::Value;

/// The words that each kind of refusal uses.
const REFUSALS: [(&str, &[&str]); 9] = [
    ("not-json", &["not JSON"]),
    ("not-a-list", &["the result has no", "is no array"]),
    ("duplicate-member", &["stands twice", "an item is unreadable"]),
    ("lone-surrogate", &["not valid JSON text"]),
    ("number-out-of-range", &["is out of range"]),
    ("too-deep", &["too deep"]),
    ("no-name", &["has no \"name\"", "has no \"uriTemplate\""]),
    ("duplicate-name", &["is listed twice"]),
    ("declared-hash", &["declare different hashes", "declared under two keys", "is no text", "is empty"]),
];

/// A result, read through the door that every message comes through.
fn result(text: &str) -> Result<Bytes, String> {
    let message = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{text}}}");
    match wire::parse(message.into_bytes()) {
        Ok(message) => Ok(Bytes::from(message.payload().text().to_owned())),
        Err(Malformed::TooDeep { .. }) => Err("too deep".into()),
        Err(Malformed::NotAMessage { why, .. }) => Err(why),
        Err(_) => Err("not JSON".into()),
    }
}

fn surface<'a>(
    opening: &str,
    pages: impl IntoIterator<Item = (Kind, Vec<&'a str>)>,
) -> Result<Surface, String> {
    let mut lists = Vec::new();
    for (kind, pages) in pages {
        let mut list = List::new(kind);
        for page in pages {
            list.add_page(result(page)?)?;
        }
        lists.push(list);
    }
    Surface::of(&Observed::new(Era::Modern, result(opening)?, lists))
}

fn of_case(case: &Value) -> Result<Surface, String> {
    let pages = case["pages"].as_object().unwrap().iter().map(|(method, pages)| {
        let pages = pages.as_array().unwrap().iter().map(|page| page.as_str().unwrap());
        (Kind::of_method(method).unwrap(), pages.collect())
    });
    surface(case["opening"].as_str().unwrap(), pages)
}

#[test]
fn every_vector_has_its_outcome() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/surface");
    let mut wrong = Vec::new();
    let mut hashes = HashMap::new();
    let mut groups = HashMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let case: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let found = of_case(&case);
        let right = match (&found, case["hash"].as_str(), case["refused"].as_str()) {
            (Ok(surface), Some(hash), None) => {
                let declared =
                    surface.declared.as_ref().map(|d| serde_json::json!({"key": d.key, "value": d.value}));
                surface.hash().to_string() == hash
                    && case["document"].as_str().is_none_or(|document| surface.document() == document)
                    && case.get("declared").is_none_or(|expected| *expected == Value::from(declared))
            }
            (Err(why), None, Some(kind)) => {
                let (_, words) = REFUSALS.iter().find(|(known, _)| *known == kind).unwrap();
                words.iter().any(|word| why.contains(word))
            }
            _ => false,
        };
        if !right {
            wrong.push(format!("{name}: {:?}", found.as_ref().map(|surface| surface.hash())));
        }
        *groups.entry(name.split('.').next().unwrap().to_owned()).or_insert(0) += 1;
        if let Ok(surface) = found {
            hashes.insert(name, surface.hash());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(groups["base"], 1);
    assert!(["equal", "differs", "alone", "refused"].iter().all(|group| groups[*group] > 5), "{groups:?}");
    // Whatever the files say: equal ones are equal, and no other two are.
    for (name, hash) in &hashes {
        let twins = hashes.iter().filter(|(_, other)| *other == hash).map(|(name, _)| name);
        if name.starts_with("equal.") {
            assert_eq!(*hash, hashes["base.json"], "{name}");
        } else {
            let unlike: Vec<_> = twins.filter(|twin| !twin.starts_with("equal.") && *twin != name).collect();
            assert!(unlike.is_empty(), "{name} has the hash of {unlike:?}");
        }
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-1e30..1e30).prop_map(Value::from),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::btree_map(".{0,6}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Tools by their names, each with a few members.
fn any_tools() -> impl Strategy<Value = Vec<Value>> {
    let members = prop::collection::btree_map(".{0,6}", any_value(), 0..5);
    prop::collection::btree_map(any::<String>(), members, 1..6).prop_map(|tools| {
        let item = |(name, members): (String, std::collections::BTreeMap<String, Value>)| {
            let mut item: serde_json::Map<_, _> = members.into_iter().collect();
            item.insert("name".into(), name.into());
            Value::Object(item)
        };
        tools.into_iter().map(item).collect()
    })
}

/// Half of them ASCII, which can make another value of a text.
fn any_character() -> impl Strategy<Value = char> {
    prop_oneof![any::<char>(), prop::char::range(' ', '~')]
}

/// A source of choices that can be made again.
struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// The same value with members in any order, spaces between tokens and characters escaped here and there.
fn respelled(value: &Value, choices: &mut Choices) -> String {
    let space = [" ", "", "\n", "\t\r"][choices.below(4)];
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(key, value)| {
                    format!("{space}{}:{space}{}", quoted(key, choices), respelled(value, choices))
                })
                .collect();
            choices.shuffle(&mut members);
            format!("{{{}{space}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| respelled(item, choices)).collect();
            format!("[{}{space}]", items.join(&format!("{space},{space}")))
        }
        Value::String(text) => quoted(text, choices),
        Value::Number(number) if number.is_f64() && choices.below(2) == 0 => {
            format!("{:e}", number.as_f64().unwrap())
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str, choices: &mut Choices) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        if choices.below(3) == 0 {
            let mut units = [0; 2];
            character
                .encode_utf16(&mut units)
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04X}")));
        } else {
            out.push_str(Value::from(character.to_string()).to_string().trim_matches('"'));
            if character == '"' {
                out.push('"');
            }
        }
    }
    out.push('"');
    out
}

/// The items on pages of any size.
fn pages(mut items: Vec<String>, choices: &mut Choices) -> Vec<String> {
    choices.shuffle(&mut items);
    let mut pages = vec![Vec::new()];
    for item in items {
        if choices.below(3) == 0 {
            pages.push(Vec::new());
        }
        pages.last_mut().unwrap().push(item);
    }
    pages.into_iter().map(|items| format!("{{\"tools\":[{}]}}", items.join(","))).collect()
}

fn of_tools(pages: &[String]) -> Result<Surface, String> {
    surface("{}", [(Kind::Tools, pages.iter().map(String::as_str).collect())])
}

fn plain(tools: &[Value]) -> String {
    format!("{{\"tools\":{}}}", Value::from(tools.to_vec()))
}

proptest! {
    #[test]
    fn spelling_order_and_pages_do_not_count(tools in any_tools(), seed in any::<u64>()) {
        let mut choices = Choices(seed);
        let items = tools.iter().map(|tool| respelled(tool, &mut choices)).collect();
        let other = of_tools(&pages(items, &mut choices)).unwrap();
        prop_assert_eq!(of_tools(&[plain(&tools)]).unwrap().document(), other.document());
    }

    #[test]
    fn any_other_character_counts(tools in any_tools(), at in any::<prop::sample::Index>(), new in any_character()) {
        let text = plain(&tools);
        let (at, old) = text.char_indices().nth(at.index(text.chars().count())).unwrap();
        prop_assume!(old != new);
        let changed = format!("{}{new}{}", &text[..at], &text[at + old.len_utf8()..]);
        // Where it is no surface any more it is refused. Where it is one, it is another one, unless it says the same.
        let Ok(found) = of_tools(std::slice::from_ref(&changed)) else { return Ok(()) };
        prop_assume!(!same(&text, &changed));
        prop_assert_ne!(of_tools(&[text]).unwrap().hash(), found.hash(), "{}", changed);
    }
}

/// Whether two lists say the same to serde_json, which knows nothing of canonical forms.
fn same(one: &str, other: &str) -> bool {
    let read = |text: &str| {
        let mut list: Value = serde_json::from_str(text).unwrap();
        let mut tools = list["tools"].take().as_array().unwrap().clone();
        tools.sort_by_key(|tool| tool["name"].to_string());
        tools
    };
    read(one) == read(other)
}
