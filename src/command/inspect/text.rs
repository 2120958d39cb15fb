//! The page for a person: a minute's reading, each line within bounds, nothing from the endpoint acting on a terminal.

use std::fmt::Write as _;

use super::{Sight, described};
use crate::report::{quoted, visible};
use crate::surface::findings::Weight;
use crate::surface::{Digest, Item, Kind};
use crate::wire::{Era, MODERN_VERSION, Object, json};

/// Rows of one table, findings, and lines of a difference; the rest is counted.
const MOST_ROWS: usize = 200;
/// Files of one skill, and arguments of one prompt.
const MOST_PARTS: usize = 20;
/// Characters of a name.
const LONGEST_NAME: usize = 64;
/// Characters of a URI.
const LONGEST_URI: usize = 120;
/// Characters of a description.
const LONGEST_DESCRIPTION: usize = 72;
/// Characters of the instructions.
const LONGEST_INSTRUCTIONS: usize = 200;
/// Characters of a place in an item, and of the arguments of a prompt.
const LONGEST_PLACE: usize = 100;
/// Characters of any other line.
const LONGEST_LINE: usize = 400;

/// The hints of a tool, which are members of its `annotations`, and what they are called here.
const HINTS: [(&str, &str); 4] = [
    ("readOnlyHint", "read-only"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "open-world"),
];

/// The whole page.
pub(super) fn page(sight: &Sight<'_>) -> String {
    let mut out = String::new();
    head(sight, &mut out);
    tools(sight.surface.list(Kind::Tools), &mut out);
    prompts(sight.surface.list(Kind::Prompts), &mut out);
    templates(sight.surface.list(Kind::ResourceTemplates), &mut out);
    skills(sight, &mut out);
    findings(sight, &mut out);
    pins(sight, &mut out);
    flags(sight, &mut out);
    out
}

fn head(sight: &Sight<'_>, out: &mut String) {
    let surface = sight.surface;
    let declared = match &surface.declared {
        Some(hash) => format!("{} under {}", quoted(&hash.value, 120), quoted(&hash.key, 120)),
        None => "none".into(),
    };
    let token = if sight.config.token.is_some() { "with a token" } else { "without a token" };
    let headers = match sight.config.headers.len() {
        0 => String::new(),
        1 => " and one extra header".into(),
        more => format!(" and {more} extra headers"),
    };
    let era = match sight.era {
        Era::Modern => format!("revision {MODERN_VERSION}"),
        Era::Legacy => "a revision opened by initialize".into(),
    };
    let instructions = match json::decode_string(&surface.instructions) {
        Some(text) => {
            let length = text.chars().count();
            let cut = if length > LONGEST_INSTRUCTIONS { ", the first of them" } else { "" };
            format!("{length} characters{cut}: {}", quoted(&text, LONGEST_INSTRUCTIONS))
        }
        None if surface.instructions == "null" => "none".into(),
        None => format!("no text: {}", visible(&surface.instructions, LONGEST_INSTRUCTIONS)),
    };
    for (name, value) in [
        ("endpoint", visible(&sight.config.url.to_string(), LONGEST_LINE)),
        ("read", format!("{token}{headers}, in {era}")),
        ("computed hash", surface.hash().to_string()),
        ("declared hash", declared),
        ("instructions", instructions),
    ] {
        let _ = writeln!(out, "{name:<14} {value}");
    }
}

fn tools(items: &[Item], out: &mut String) {
    let mut table = Table::new(["tool"].into_iter().chain(HINTS.map(|(_, name)| name)).chain(LAST));
    table.number(1 + HINTS.len());
    for item in items {
        let object = Object::read_checked(&item.text).unwrap_or_default();
        let hints = object.object("annotations").ok().flatten().unwrap_or_default();
        let hints = HINTS.map(|(hint, _)| match hints.get(hint) {
            Some("true") => "yes".to_owned(),
            Some("false") => "no".to_owned(),
            Some("null") | None => "?".to_owned(),
            Some(_) => "odd".to_owned(),
        });
        let name = label(&item.name, LONGEST_NAME);
        table.row([name].into_iter().chain(hints).chain(size_and_description(item, &object)));
    }
    section("tools", items.len(), ", hints as the endpoint gives them", out);
    table.write(out);
}

fn prompts(items: &[Item], out: &mut String) {
    let mut table = Table::new(["prompt", "arguments"].into_iter().chain(LAST));
    table.number(2);
    for item in items {
        let object = Object::read_checked(&item.text).unwrap_or_default();
        let row = [label(&item.name, LONGEST_NAME), arguments(&object)];
        table.row(row.into_iter().chain(size_and_description(item, &object)));
    }
    section("prompts", items.len(), ", required arguments with *", out);
    table.write(out);
}

fn arguments(prompt: &Object<'_>) -> String {
    let all = prompt.get("arguments").and_then(|all| json::array_items_checked(all).ok()).unwrap_or_default();
    let named = all.iter().take(MOST_PARTS).map(|(argument, _)| {
        let argument = Object::read_checked(argument).unwrap_or_default();
        let name = argument.string("name").map_or_else(|| "?".into(), |name| label(&name, LONGEST_NAME));
        format!("{name}{}", if argument.get("required") == Some("true") { "*" } else { "" })
    });
    let mut named: Vec<_> = named.collect();
    if all.len() > MOST_PARTS {
        named.push(format!("and {} more", all.len() - MOST_PARTS));
    }
    if named.is_empty() { "none".into() } else { visible(&named.join(", "), LONGEST_PLACE) }
}

fn templates(items: &[Item], out: &mut String) {
    let mut table = Table::new(["template", "name", "type"].into_iter().chain(LAST));
    table.number(3);
    for item in items {
        let object = Object::read_checked(&item.text).unwrap_or_default();
        let given =
            |member: &str| object.string(member).map_or("?".into(), |text| label(&text, LONGEST_NAME));
        let row = [label(&item.name, LONGEST_URI), given("name"), given("mimeType")];
        table.row(row.into_iter().chain(size_and_description(item, &object)));
    }
    section("resource templates", items.len(), "", out);
    table.write(out);
}

fn skills(sight: &Sight<'_>, out: &mut String) {
    let items = sight.surface.list(Kind::Skills);
    let refused = sight.skills.map_or(0, |skills| skills.refused().count());
    let note = if refused > 0 { format!(", {refused} of them refused") } else { String::new() };
    section("skills", items.len(), &note, out);
    for item in items.iter().take(MOST_ROWS) {
        let uri = label(&item.name, LONGEST_URI);
        let object = Object::read_checked(&item.text).unwrap_or_default();
        if let Some(why) = sight.refusal(&item.name) {
            let _ = writeln!(out, "  {uri}  REFUSED: {}", visible(why, LONGEST_LINE));
            continue;
        }
        let front_matter = object.object("frontmatter").ok().flatten().unwrap_or_default();
        let _ = writeln!(out, "  {uri}  {}", description(&front_matter));
        files(&item.name, &object, out);
    }
    left_out(items.len(), out);
}

fn files(skill: &str, entry: &Object<'_>, out: &mut String) {
    let all =
        entry.get("resources").and_then(|files| json::array_items_checked(files).ok()).unwrap_or_default();
    let folder = skill.strip_suffix("SKILL.md").unwrap_or_default();
    let mut table = Table::new(["  file", "bytes", "digest"]);
    table.number(1);
    for (file, _) in all.iter().take(MOST_PARTS) {
        let file = Object::read_checked(file).unwrap_or_default();
        let uri = file.string("uri").unwrap_or_default();
        let name = uri.strip_prefix(folder).filter(|name| !name.is_empty()).unwrap_or(&uri);
        let digest = file.string("digest").unwrap_or_default();
        let digest = match Digest::parse(&digest) {
            Some(_) => format!("{}…", digest.chars().take(23).collect::<String>()),
            None => "?".into(),
        };
        let size = visible(file.get("size").unwrap_or("?"), 20);
        table.row([format!("  {}", label(name, LONGEST_URI)), size, digest]);
    }
    table.write(out);
    if all.len() > MOST_PARTS {
        let _ = writeln!(out, "    … and {} more files; see --inspect --json", all.len() - MOST_PARTS);
    }
}

fn findings(sight: &Sight<'_>, out: &mut String) {
    section("findings", sight.findings.len(), "", out);
    let mut table = Table::new(["weight", "rule", "where", "what"]);
    for finding in &sight.findings {
        let weight = match finding.weight() {
            Weight::Warning => "warning",
            Weight::Note => "note",
        };
        let place = match finding.place.as_str() {
            "" => finding.subject.clone(),
            place => format!("{}: {place}", finding.subject),
        };
        let what = visible(&finding.what, LONGEST_LINE);
        table.row([weight.into(), finding.id.into(), visible(&place, LONGEST_PLACE), what]);
    }
    table.write(out);
}

fn pins(sight: &Sight<'_>, out: &mut String) {
    let pin = &sight.config.pin;
    let no_lock_yet = sight.config.lock.is_some() && pin.lock.is_none();
    if !pin.is_given() && !no_lock_yet {
        return;
    }
    out.push_str("\npins\n");
    for expected in &pin.hashes {
        let (text, of) = described(expected);
        let verdict = if sight.surface.has(expected) { "matches" } else { "DOES NOT MATCH" };
        let text = label(&text, 120);
        let _ = writeln!(out, "  {verdict}: --expect-hash {text} ({of})");
    }
    if no_lock_yet {
        out.push_str("  no lock is written yet\n");
    }
    let Some((lock, difference)) = &sight.difference else { return };
    let file = visible(&lock.file, LONGEST_LINE);
    if difference.is_empty() {
        let _ = writeln!(out, "  matches: the surface is the same as in the lock {file}");
        return;
    }
    let _ = writeln!(out, "  DOES NOT MATCH: what is different from the lock {file}");
    let rows = difference.rows();
    for row in rows.iter().take(MOST_ROWS) {
        let _ = writeln!(out, "    {}{}", row.mark.sign(), visible(&row.text, LONGEST_LINE));
    }
    left_out(rows.len(), out);
}

fn flags(sight: &Sight<'_>, out: &mut String) {
    let file = match &sight.config.lock {
        Some(place) if place.automatic => "auto".to_owned(),
        Some(place) => shell_word(&place.path.display().to_string()),
        None => "FILE".into(),
    };
    let _ = write!(
        out,
        "\nto pin this surface add one of\n  --expect-hash {}\n  --lock {file}   after it was written with --lock {file} --write-lock\n",
        sight.surface.hash()
    );
}

/// What every list has behind its own columns.
const LAST: [&str; 2] = ["bytes", "description"];

fn size_and_description(item: &Item, object: &Object<'_>) -> [String; 2] {
    [item.text.len().to_string(), description(object)]
}

/// The first line of a description; an ellipsis where there is more.
fn description(object: &Object<'_>) -> String {
    let text = object.string("description").unwrap_or_default();
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    let cut = visible(first, LONGEST_DESCRIPTION);
    let more = first.len() < text.len() && !cut.ends_with('…');
    format!("{cut}{}", if more { " …" } else { "" })
}

/// A name that cannot be taken for anything but one: quoted where it is no plain word.
fn label(text: &str, limit: usize) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:{}+~@%".contains(&byte);
    match !text.is_empty() && text.bytes().all(plain) {
        true => visible(text, limit),
        false => quoted(text, limit),
    }
}

/// A word for a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:+@%".contains(&byte);
    let text = visible(text, LONGEST_LINE);
    match text.bytes().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn section(name: &str, count: usize, note: &str, out: &mut String) {
    match count {
        0 => drop(writeln!(out, "\n{name}: none")),
        _ => drop(writeln!(out, "\n{name}: {count}{note}")),
    }
}

fn left_out(count: usize, out: &mut String) {
    if count > MOST_ROWS {
        let _ = writeln!(out, "  … and {} more; see --inspect --json", count - MOST_ROWS);
    }
}

/// Columns of equal width, counted in characters. What stands in it is visible already.
struct Table {
    rows: Vec<Vec<String>>,
    numbers: Option<usize>,
    count: usize,
}

impl Table {
    fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Table { rows: vec![head.into_iter().map(str::to_owned).collect()], numbers: None, count: 0 }
    }

    /// The column that is set to the right.
    fn number(&mut self, column: usize) {
        self.numbers = Some(column);
    }

    /// One more row; beyond the limit it is only counted.
    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.count += 1;
        if self.count <= MOST_ROWS {
            self.rows.push(cells.into_iter().collect());
        }
    }

    fn write(&self, out: &mut String) {
        if self.count == 0 {
            return;
        }
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let width = *width;
                let _ = match self.numbers == Some(at) {
                    true => write!(line, "  {cell:>width$}"),
                    false => write!(line, "  {cell:<width$}"),
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        left_out(self.count, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_in_characters() {
        let mut table = Table::new(["name", "bytes", "text"]);
        table.number(1);
        table.row(["é".into(), "12345678".into(), "x".into()]);
        table.row(["abcdef".into(), "1".into(), String::new()]);
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(out, "  name       bytes  text\n  é       12345678  x\n  abcdef         1\n");
    }

    #[test]
    fn rows_beyond_the_limit_are_counted() {
        let mut table = Table::new(["name"]);
        (0..MOST_ROWS + 3).for_each(|at| table.row([at.to_string()]));
        let mut out = String::new();
        table.write(&mut out);
        assert!(out.ends_with("  199\n  … and 3 more; see --inspect --json\n"), "{out}");
    }

    #[test]
    fn a_name_that_is_no_plain_word_is_quoted() {
        assert_eq!(label("a.b-c/{d}", 64), "a.b-c/{d}");
        assert_eq!(label("echo  yes", 64), "\"echo  yes\"");
        assert_eq!(label("", 64), "\"\"");
        assert_eq!(label("a\u{1b}[2J\u{202e}\n", 64), "\"a\\u001b[2J\\u{202e}\\n\"");
        assert_eq!(shell_word("a b'c"), r"'a b'\''c'");
    }

    #[test]
    fn of_a_description_the_first_line_is_shown() {
        let of = |text: &str| description(&Object::read(text).unwrap());
        assert_eq!(of("{}"), "");
        assert_eq!(of(r#"{"description":"\n One.\nTwo."}"#), "One. …");
        assert_eq!(of(r#"{"description":"One."}"#), "One.");
        assert!(of(&format!(r#"{{"description":"{}"}}"#, "x".repeat(100))).ends_with("x…"));
    }
}
