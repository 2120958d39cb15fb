//! The front matter of a `SKILL.md` as canonical JSON: YAML 1.2 typed by its core schema, and less of YAML than there
//! is. Whatever two readers could read differently is refused.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::canon::{Uncanonical, canonical};
use crate::wire::json::quote;

/// More than that is no front matter.
const MAX_BYTES: usize = 64 * 1024;
/// Mappings and sequences in each other.
const MAX_DEPTH: usize = 64;

/// What is wrong, in words that quote nothing of the file.
pub type BadFrontMatter = &'static str;

/// Reads it.
///
/// # Errors
/// There is none, or its meaning is not certain.
pub fn read(file: &str) -> Result<String, BadFrontMatter> {
    let json = json(between_the_lines(file)?)?;
    canonical(&json).map_err(|why| match why {
        Uncanonical::Duplicate(_) => "a key of its front matter stands twice",
        Uncanonical::OutOfRange(_) => "a number of its front matter is out of range",
        Uncanonical::TooDeep => TOO_DEEP,
        Uncanonical::Syntax => "its front matter cannot be written as JSON",
    })
}

const TOO_DEEP: BadFrontMatter = "its front matter nests deeper than 64 levels";

/// Between a first line `---` and the next one. Lines end with LF or CRLF.
fn between_the_lines(file: &str) -> Result<&str, BadFrontMatter> {
    if file.starts_with('\u{feff}') {
        return Err("it begins with a byte-order mark");
    }
    let rest = file.strip_prefix("---\n").or_else(|| file.strip_prefix("---\r\n"));
    let rest = rest.ok_or("it does not begin with the line --- of a front matter")?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line, "---" | "---\n" | "---\r\n") {
            let inner = rest.get(..end).unwrap_or_default();
            // To some readers a lone CR ends a line; NUL ends the text for the parser below.
            let line_ends = inner.matches('\r').count() == inner.matches("\r\n").count();
            return if line_ends && inner.chars().all(is_printable) {
                Ok(inner)
            } else {
                Err("its front matter has a control character")
            };
        }
        end += line.len();
        if end > MAX_BYTES {
            return Err("its front matter is larger than 65536 bytes");
        }
    }
    Err("its front matter does not end with a line ---")
}

/// YAML 1.2.2 §5.1, without the byte-order mark.
fn is_printable(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// A collection that is open, and what comes next in it.
enum Open {
    Sequence { first: bool },
    Mapping { first: bool, key: bool },
}

/// One YAML document, a mapping, as JSON.
fn json(yaml: &str) -> Result<String, BadFrontMatter> {
    const SYNTAX: BadFrontMatter = "its front matter is not valid YAML 1.2";
    let mut out = String::with_capacity(yaml.len() + 64);
    let mut open: Vec<Open> = Vec::new();
    let mut documents = 0;
    let mut parser = Parser::new_from_str(yaml);
    while let Some(event) = parser.next_event() {
        let (event, _) = event.map_err(|_| SYNTAX)?;
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err("its front matter has more than one document");
                }
            }
            Event::Alias(_) => return Err("its front matter has an alias"),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_anchor(anchor)?;
                let value = scalar(&text, style, tag.as_deref())?;
                if open.is_empty() {
                    return Err("its front matter is no mapping");
                }
                if place(&mut open, &mut out) && !value.starts_with('"') {
                    return Err("a key of its front matter is no string");
                }
                out.push_str(&value);
                placed(&mut open, &mut out);
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_anchor(anchor)?;
                refuse_tag(tag.as_deref(), "seq")?;
                if open.is_empty() {
                    return Err("its front matter is no mapping");
                }
                begin(&mut open, &mut out, Open::Sequence { first: true })?;
                out.push('[');
            }
            Event::MappingStart(anchor, tag) => {
                refuse_anchor(anchor)?;
                refuse_tag(tag.as_deref(), "map")?;
                begin(&mut open, &mut out, Open::Mapping { first: true, key: true })?;
                out.push('{');
            }
            Event::SequenceEnd | Event::MappingEnd => {
                out.push(if event == Event::SequenceEnd { ']' } else { '}' });
                open.pop();
                placed(&mut open, &mut out);
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }
    if documents == 0 { Err("its front matter is empty") } else { Ok(out) }
}

/// Writes what stands before the next node. Whether that is a key.
fn place(open: &mut [Open], out: &mut String) -> bool {
    let (first, key) = match open.last_mut() {
        Some(Open::Sequence { first }) => (first, false),
        Some(Open::Mapping { first, key: true }) => (first, true),
        Some(Open::Mapping { .. }) | None => return false,
    };
    if !std::mem::replace(first, false) {
        out.push(',');
    }
    key
}

/// Writes what stands after a node.
fn placed(open: &mut [Open], out: &mut String) {
    if let Some(Open::Mapping { key, .. }) = open.last_mut() {
        if *key {
            out.push(':');
        }
        *key = !*key;
    }
}

fn begin(open: &mut Vec<Open>, out: &mut String, collection: Open) -> Result<(), BadFrontMatter> {
    if place(open, out) {
        return Err("a key of its front matter is no string");
    }
    if open.len() == MAX_DEPTH {
        return Err(TOO_DEEP);
    }
    open.push(collection);
    Ok(())
}

fn refuse_anchor(anchor: usize) -> Result<(), BadFrontMatter> {
    if anchor == 0 { Ok(()) } else { Err("its front matter has an anchor") }
}

const TAGGED: BadFrontMatter = "its front matter has a tag that is not of the core schema, or does not fit";

fn refuse_tag(tag: Option<&Tag>, core: &str) -> Result<(), BadFrontMatter> {
    match tag {
        Some(tag) if !(tag.is_yaml_core_schema() && tag.suffix == core) => Err(TAGGED),
        _ => Ok(()),
    }
}

/// A scalar as JSON.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<String, BadFrontMatter> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { plain(text) } else { Ok(quote(text)) };
    };
    if !tag.is_yaml_core_schema() {
        return Err(TAGGED);
    }
    let value = match tag.suffix.as_str() {
        "str" => return Ok(quote(text)),
        "null" => null(text),
        "bool" => boolean(text),
        "int" => integer(text),
        "float" => integer(text).or_else(|| float(text)),
        _ => None,
    };
    value.ok_or(TAGGED)
}

/// YAML 1.2.2 §10.3.2: what a plain scalar is. `yes`, `on` and dates are strings.
fn plain(text: &str) -> Result<String, BadFrontMatter> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err("its front matter has a number that JSON does not have");
    }
    let value = null(text).or_else(|| boolean(text)).or_else(|| integer(text)).or_else(|| float(text));
    Ok(value.unwrap_or_else(|| quote(text)))
}

fn null(text: &str) -> Option<String> {
    matches!(text, "" | "~" | "null" | "Null" | "NULL").then(|| "null".to_owned())
}

fn boolean(text: &str) -> Option<String> {
    match text {
        "true" | "True" | "TRUE" => Some("true".to_owned()),
        "false" | "False" | "FALSE" => Some("false".to_owned()),
        _ => None,
    }
}

/// `[-+]? [0-9]+`, `0o [0-7]+`, `0x [0-9a-fA-F]+`. Decimal digits are kept, however many.
fn integer(text: &str) -> Option<String> {
    let based = |digits: &str, base: u32| {
        let digits = digits.strip_prefix(|first: char| first.is_digit(base)).map(|_| digits)?;
        u128::from_str_radix(digits, base).ok().map(|value| value.to_string())
    };
    if let Some(digits) = text.strip_prefix("0o") {
        return based(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return based(digits, 16);
    }
    let (sign, digits) = signed(text);
    is_digits(digits).then(|| format!("{sign}{}", without_zeros(digits)))
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn float(text: &str) -> Option<String> {
    let (sign, rest) = signed(text);
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (rest, None),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fits = match (whole, fraction) {
        ("", fraction) => is_digits(fraction) && number.starts_with('.'),
        (whole, "") => is_digits(whole),
        (whole, fraction) => is_digits(whole) && is_digits(fraction),
    };
    if !fits {
        return None;
    }
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    let mut out = format!("{sign}{}.{fraction}", without_zeros(whole));
    if let Some(exponent) = exponent {
        let (sign, digits) = signed(exponent);
        if !is_digits(digits) {
            return None;
        }
        out.push_str(&format!("e{sign}{digits}"));
    }
    Some(out)
}

fn signed(text: &str) -> (&str, &str) {
    match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_zeros(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" => "0",
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(yaml: &str) -> Result<String, BadFrontMatter> {
        read(&format!("---\n{yaml}\n---\nbody\n"))
    }

    #[test]
    fn plain_scalars_are_typed_by_the_core_schema() {
        for (written, json) in [
            ("", "null"),
            ("~", "null"),
            ("NULL", "null"),
            ("nUll", "\"nUll\""),
            ("True", "true"),
            ("false", "false"),
            ("yes", "\"yes\""),
            ("on", "\"on\""),
            ("n", "\"n\""),
            ("12", "12"),
            ("+12", "12"),
            ("-012", "-12"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0xg", "\"0xg\""),
            ("0x+1", "\"0x+1\""),
            ("0b1", "\"0b1\""),
            ("1_000", "\"1_000\""),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1.0", "1"),
            ("1.", "1"),
            (".5", "0.5"),
            ("-.5e1", "-5"),
            ("1e3", "1000"),
            ("1E-7", "1e-7"),
            (".", "\".\""),
            ("1.2.3", "\"1.2.3\""),
            ("e3", "\"e3\""),
            ("1e", "\"1e\""),
            ("-", "[null]"),
            ("2026-07-28", "\"2026-07-28\""),
            ("12:30:45", "\"12:30:45\""),
            ("'12'", "\"12\""),
            ("\"\\u00e9\\n\"", "\"é\\n\""),
            ("!!str 12", "\"12\""),
            ("!!int '12'", "12"),
            ("!!float 3", "3"),
            ("|\n  one\n  two", "\"one\\ntwo\\n\""),
            (">-\n  one\n  two", "\"one two\""),
            ("[a, {b: 1}]", "[\"a\",{\"b\":1}]"),
        ] {
            assert_eq!(of(&format!("k:\n  {written}")), Ok(format!("{{\"k\":{json}}}")), "{written}");
        }
    }

    #[test]
    fn what_can_be_read_differently_is_refused() {
        let deep = |levels: usize| format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(of(&deep(63)).is_ok());
        for (yaml, why) in [
            ("a: &x 1", "anchor"),
            ("a: &x 1\nb: *x", "anchor"),
            ("a: *x", "not valid"),
            ("a: !mine 1", "tag"),
            ("a: !!binary aGk=", "tag"),
            ("a: !!int x", "tag"),
            ("a: !!map []", "tag"),
            ("a: ! 1", "tag"),
            ("a: 1\na: 2", "twice"),
            ("a: 1\n\"\\x61\": 2", "twice"),
            ("a: {b: 1, b: 2}", "twice"),
            ("1: x", "no string"),
            ("true: x", "no string"),
            ("~: x", "no string"),
            ("? [a]\n: x", "no string"),
            ("? {a: 1}\n: x", "no string"),
            ("a: .inf", "JSON does not"),
            ("a: -.INF", "JSON does not"),
            ("a: .nan", "JSON does not"),
            ("a: 1e400", "out of range"),
            ("a: 1\n...\nb: 2", "more than one"),
            ("a: 1\n--- \nb: 2", "more than one"),
            ("- a", "no mapping"),
            ("a", "no mapping"),
            ("", "is empty"),
            ("# nothing", "is empty"),
            ("a: [", "not valid"),
            ("a: b: c", "not valid"),
            ("a:\n\tb: 1", "not valid"),
            ("%TAG !! tag:x,2026:\na: !!str 1", "not valid"),
            ("a: 1\0\nb: 2", "control"),
            ("a: 1\rb: 2", "control"),
            ("a: \u{7}", "control"),
            ("a: \u{feff}x", "control"),
            (&deep(64), "deeper"),
            (&deep(30_000), "not valid"),
            (&format!("a: {}", "x".repeat(65536)), "larger"),
        ] {
            let found = of(yaml);
            assert!(found.as_ref().is_err_and(|found| found.contains(why)), "{yaml:.60}: {found:?}");
        }
    }

    #[test]
    fn it_stands_between_the_first_line_and_the_next_of_its_kind() {
        let json = Ok("{\"a\":1}".to_owned());
        for file in [
            "---\na: 1\n---\n",
            "---\r\na: 1\r\n---\r\nbody",
            "---\na: 1\n---",
            "---\na: 1\n---\n---\nb: 2\n---\n",
        ] {
            assert_eq!(read(file), json, "{file:?}");
        }
        for (file, why) in [
            ("", "does not begin"),
            ("\n---\na: 1\n---\n", "does not begin"),
            ("--- \na: 1\n---\n", "does not begin"),
            ("---", "does not begin"),
            ("\u{feff}---\na: 1\n---\n", "byte-order"),
            ("---\na: 1\n", "does not end"),
            ("---\na: 1\n---\r", "does not end"),
            ("---\na: 1\n ---\n", "does not end"),
            ("---\n---\n", "empty"),
        ] {
            let found = read(file).unwrap_err();
            assert!(found.contains(why), "{file:?}: {found}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_text_makes_it_panic(text in "([-?:,\\[\\]{}#&*!|>'\"%@` \n\t~.0a]|\\PC){0,40}") {
            let _ = of(&text);
        }

        #[test]
        fn what_is_written_as_a_json_string_is_read_as_that_string(text in "[ -~é\n]{0,30}") {
            let expected = canonical(&serde_json::json!({ "k": text }).to_string()).unwrap();
            prop_assert_eq!(of(&format!("k: {}", quote(&text))), Ok(expected));
        }
    }

    /// The parser has no limits of its own. In a build without optimisation a second is a hundred times what it takes.
    #[test]
    fn no_text_of_the_allowed_size_takes_long() {
        let pieces = [
            "[",
            "{",
            "? ",
            "- ",
            "a: ",
            "'",
            "\"",
            "a\n",
            "{a: [",
            "!!str ",
            "&a ",
            "*a ",
            "#",
            "[a]: ",
            "|\n",
            " ",
            "a,",
            "\t",
            "- - ",
            "? - ",
            "\n\n",
            "'a' ",
            "[a, ",
            "{a, ",
            ": ",
            "a: b\n",
            "\"\\x41\": \n",
            ">\n ",
            "{\n",
            "[\n",
            "- a\n",
            "é",
        ];
        for piece in pieces {
            let began = std::time::Instant::now();
            let text: String = piece.repeat(65536 / piece.len() - 8);
            let _ = (of(&text), of(&format!("a: {text}")), of(&format!("a: [{text}")));
            assert!(began.elapsed().as_secs() < 8, "{piece:?}: {:?}", began.elapsed());
        }
    }
}
