//! What one side sends arrives on the other side as it is. The cases are in `fixtures/lossless/`.

mod lists;
mod notifications;
mod openings;
mod questions;
mod results;
mod upward;

use std::path::Path;

use crate::support::{Era, Harness};

/// The members that one era has and the other has not.
const ERA_MEMBERS: [&str; 3] = ["\"resultType\"", "\"ttlMs\"", "\"cacheScope\""];

/// Everything an endpoint needs to be asked for anything.
const CAPABILITIES: &str =
    r#"{"tools":{},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}}"#;

/// The cases of a kind: name and text, in the order of their names.
fn cases(kind: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/lossless");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.')) {
            let text = std::fs::read_to_string(path).unwrap();
            cases.push((name, text.strip_suffix('\n').unwrap().to_owned()));
        }
    }
    assert!(!cases.is_empty(), "no case of the kind {kind}");
    cases.sort();
    cases
}

/// Newlines between tokens arrive as spaces; inside a string there can be none.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The members of an object, each as its own text: key with quotes, value.
fn members(object: &str) -> Vec<(String, String)> {
    let inner =
        object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_else(|| {
            panic!("no object: {object}");
        });
    let parts = split(inner, b',').into_iter();
    parts.map(|part| split(part, b':')).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// The items of an array, each as its own text.
fn items(array: &str) -> Vec<&str> {
    let inner = array.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    split(inner.unwrap_or_else(|| panic!("no array: {array}")), b',')
}

/// The value of a member, as its own text.
fn value(object: &str, key: &str) -> String {
    let quoted = format!("\"{key}\"");
    let found = members(object).into_iter().find(|(name, _)| *name == quoted);
    found.unwrap_or_else(|| panic!("no {key} in {object}")).1
}

/// Splits at a sign where it stands outside of strings, objects and arrays. Nothing splits into nothing.
fn split(text: &str, sign: u8) -> Vec<&str> {
    let (mut depth, mut string, mut escaped, mut from) = (0_usize, false, false, 0);
    let mut parts = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            _ if string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ if byte == sign && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = text[from..].trim();
    if !(parts.is_empty() && last.is_empty()) {
        parts.push(last);
    }
    parts
}

/// The members without those that belong to an era.
fn without(object: &str, cut: &[&str]) -> Vec<(String, String)> {
    members(object).into_iter().filter(|(key, _)| !cut.contains(&key.as_str())).collect()
}

/// The object with more members, some in front and some at the end. They are given without braces.
fn with(object: &str, front: &str, back: &str) -> String {
    let inner = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap();
    let parts = [front, inner, back].into_iter().filter(|part| !part.trim().is_empty());
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

/// A result as an endpoint of that era sends it: the members of the era in different places.
fn as_sent(era: Era, text: &str, cached: bool, n: usize) -> String {
    const TYPE: &str = r#""resultType":"complete""#;
    const CACHE: &str = r#""ttlMs":60000,"cacheScope":"public""#;
    match (era, n % 3) {
        (Era::Legacy, _) => text.to_owned(),
        (Era::Modern, 0) => with(text, TYPE, if cached { CACHE } else { "" }),
        (Era::Modern, 1) => with(text, if cached { CACHE } else { "" }, r#""resultType" : "complete""#),
        (Era::Modern, _) if cached => with(text, "", &format!("{TYPE},{CACHE}")),
        (Era::Modern, _) => with(text, "", TYPE),
    }
}

/// A result that arrived, held against what was sent.
fn judge(eras: (Era, Era), case: &str, sent: &str, received: &str, cached: bool) {
    let sent = one_line(sent);
    let (harness_era, endpoint_era) = eras;
    if harness_era == endpoint_era {
        assert_eq!(received, sent, "{case}: not as it was sent");
        return;
    }
    assert_eq!(without(received, &ERA_MEMBERS), without(&sent, &ERA_MEMBERS), "{case}");
    has_its_era(harness_era, case, received, cached);
}

/// A result has the members that an era asks for, and no other era's.
fn has_its_era(era: Era, case: &str, received: &str, cached: bool) {
    let has = |key: &str| members(received).iter().filter(|(name, _)| name == key).count();
    if era == Era::Legacy {
        assert_eq!(ERA_MEMBERS.map(has), [0, 0, 0], "{case}: {received}");
        return;
    }
    assert_eq!(value(received, "resultType"), "\"complete\"", "{case}");
    assert_eq!(ERA_MEMBERS.map(has), [1, usize::from(cached), usize::from(cached)], "{case}: {received}");
}

/// Asks, and yields the exact text of the result.
async fn asked(harness: &mut Harness, method: &str, params_raw: &str) -> String {
    harness.ask(method, params_raw).await.result_raw()
}

#[test]
fn texts_are_taken_apart_as_they_stand() {
    let text = r#" { "a" : [1,{"b":"}"}] ,"c\",":"x:y" , "":{} } "#;
    let expected = [("\"a\"", r#"[1,{"b":"}"}]"#), (r#""c\",""#, "\"x:y\""), ("\"\"", "{}")];
    assert_eq!(members(text), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(members("{ }"), []);
    assert_eq!(items(r#"[ 1.0 , [2,3],"," ]"#), ["1.0", "[2,3]", "\",\""]);
    assert_eq!(with("{}", "\"a\":1", ""), r#"{"a":1}"#);
    assert_eq!(with(r#"{"x":0}"#, "\"a\":1", "\"b\":2"), r#"{"a":1,"x":0,"b":2}"#);
}
