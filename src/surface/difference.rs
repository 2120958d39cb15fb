//! What is different between two surfaces, item by item.

use std::cmp::Ordering;

use super::canon::utf16;
use super::content::{Item, Surface};
use super::declared::DeclaredHash;
use super::layout::spelled_out;
use super::observed::Kind;
use crate::report::{Mark, Row, quoted, visible};
use crate::wire::{Object, json};

/// What is different between two surfaces. Empty when they are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Each change, in the order: declared hash, instructions, tools, prompts, resource templates, skills.
    pub changes: Vec<Change>,
}

/// One part of the surface that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The hash that the endpoint declares.
    Declared {
        /// Before.
        old: Option<DeclaredHash>,
        /// Now.
        new: Option<DeclaredHash>,
    },
    /// The instructions.
    Instructions(MemberChange),
    /// An item that was not there.
    Added(Kind, Item),
    /// An item that is no longer there.
    Removed(Kind, Item),
    /// An item with other members.
    Changed {
        /// Of which list.
        kind: Kind,
        /// Its name.
        name: String,
        /// What in it.
        members: Members,
    },
}

/// The members of one item that are different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// One by one, in canonical order.
    pub list: Vec<MemberChange>,
    /// At least so many more, which are not listed.
    pub more: usize,
    /// All of them are below `annotations`.
    pub only_hints: bool,
}

/// One value that is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberChange {
    /// Where in the item: names joined by dots, positions in brackets (`inputSchema.properties.a.enum[2]`), a name that
    /// is no plain word quoted in brackets (`["odd name"]`). Empty for the whole.
    pub path: String,
    /// The value before, in canonical form.
    pub old: Option<String>,
    /// The value now, in canonical form.
    pub new: Option<String>,
}

/// Changes listed of one item.
const MOST_OF_ITEM: usize = 200;
/// Changes listed of all items together, but for the first of each item.
const MOST_OF_ALL: usize = 5000;
/// Characters of a name in a path.
const LONGEST_NAME: usize = 200;
/// Bytes of a path below which nothing is looked for: what is different there is one value.
const LONGEST_PATH: usize = 1000;
/// The member that holds the hints by which a harness decides what to ask its user about.
const HINTS: &str = "annotations";

impl Difference {
    /// Compares.
    pub fn between(old: &Surface, new: &Surface) -> Self {
        let mut changes = Vec::new();
        if old.declared != new.declared {
            changes.push(Change::Declared { old: old.declared.clone(), new: new.declared.clone() });
        }
        if old.instructions != new.instructions {
            let given = |text: &String| Some(text).filter(|text| *text != "null").cloned();
            let (old, new) = (given(&old.instructions), given(&new.instructions));
            changes.push(Change::Instructions(MemberChange { path: String::new(), old, new }));
        }
        let mut left = MOST_OF_ALL;
        for kind in Kind::ALL {
            compare_lists(kind, old.list(kind), new.list(kind), &mut left, &mut changes);
        }
        Difference { changes }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether nothing moved but the annotations of tools and prompts.
    pub fn hints_only(&self) -> bool {
        let is_hint = |change: &Change| match change {
            Change::Changed { kind: Kind::Tools | Kind::Prompts, members, .. } => members.only_hints,
            _ => false,
        };
        !self.changes.is_empty() && self.changes.iter().all(is_hint)
    }

    /// For a person: a heading for each change, and below it what was and what is.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.changes.iter().for_each(|change| change.push_rows(&mut rows));
        if self.hints_only() {
            let text = "only hints (annotations) moved; servers are known to flip these".into();
            rows.push(Row { mark: Mark::Note, text });
        }
        rows
    }

    /// For a program: an array of objects with `kind`, `name`, `change` and `members`; the values whole, an absent one
    /// left out, invisible characters as `\u` escapes.
    pub fn to_json(&self) -> String {
        let changes: Vec<String> = self.changes.iter().map(Change::to_json).collect();
        spelled_out(&format!("[{}]", changes.join(",")))
    }
}

fn compare_lists(kind: Kind, old: &[Item], new: &[Item], left: &mut usize, changes: &mut Vec<Change>) {
    for (old, new) in merge(old, new, |item| item.name.as_str()) {
        match (old, new) {
            (Some(old), Some(new)) if old.text == new.text => {}
            (Some(old), Some(new)) => {
                let members = Members::between(&old.text, &new.text, MOST_OF_ITEM.min(*left).max(1));
                *left = left.saturating_sub(members.list.len());
                changes.push(Change::Changed { kind, name: new.name.clone(), members });
            }
            (Some(old), None) => changes.push(Change::Removed(kind, old.clone())),
            (None, Some(new)) => changes.push(Change::Added(kind, new.clone())),
            (None, None) => {}
        }
    }
}

/// Two sorted lists side by side, each name once.
fn merge<'a, T>(
    old: &'a [T],
    new: &'a [T],
    name: impl Fn(&T) -> &str,
) -> Vec<(Option<&'a T>, Option<&'a T>)> {
    let mut pairs = Vec::with_capacity(old.len().max(new.len()));
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some(old), Some(new)) => utf16(name(old), name(new)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return pairs,
        };
        pairs.push(match order {
            Ordering::Less => (old.next(), None),
            Ordering::Greater => (None, new.next()),
            Ordering::Equal => (old.next(), new.next()),
        });
    }
}

impl Members {
    /// Compares two different items in canonical form.
    fn between(old: &str, new: &str, most: usize) -> Self {
        let mut walk = Walk { path: String::new(), found: Vec::new(), most, more: 0 };
        walk.compare(Some(old), Some(new));
        let Walk { found: list, more, .. } = walk;
        Members { list, more, only_hints: only_hints(old, new) }
    }
}

fn only_hints(old: &str, new: &str) -> bool {
    let (Ok(old), Ok(new)) = (Object::read_checked(old), Object::read_checked(new)) else { return false };
    let (old, new): (Vec<_>, Vec<_>) = (old.members().collect(), new.members().collect());
    let mut moved = merge(&old, &new, |member| member.key.as_ref())
        .into_iter()
        .filter(|(old, new)| old.map(|member| member.value) != new.map(|member| member.value))
        .filter_map(|(old, new)| old.or(new))
        .peekable();
    moved.peek().is_some() && moved.all(|member| member.key == HINTS)
}

/// A walk through two values at once.
struct Walk {
    path: String,
    found: Vec<MemberChange>,
    most: usize,
    more: usize,
}

impl Walk {
    fn compare(&mut self, old: Option<&str>, new: Option<&str>) {
        if old == new {
            return;
        }
        // Beyond the limit differences are counted where they are met, not looked into.
        if self.found.len() == self.most {
            self.more += 1;
            return;
        }
        if let (Some(old), Some(new)) = (old, new)
            && self.path.len() < LONGEST_PATH
            && self.enter(old, new)
        {
            return;
        }
        let path = self.path.clone();
        self.found.push(MemberChange { path, old: old.map(str::to_owned), new: new.map(str::to_owned) });
    }

    /// Compares part by part what has parts on both sides and is different in them.
    fn enter(&mut self, old: &str, new: &str) -> bool {
        let before = self.found.len() + self.more;
        match (old.as_bytes().first(), new.as_bytes().first()) {
            (Some(b'{'), Some(b'{')) => self.enter_objects(old, new),
            (Some(b'['), Some(b'[')) => self.enter_arrays(old, new),
            _ => {}
        }
        self.found.len() + self.more > before
    }

    fn enter_objects(&mut self, old: &str, new: &str) {
        let (Ok(old), Ok(new)) = (Object::read_checked(old), Object::read_checked(new)) else { return };
        let (old, new): (Vec<_>, Vec<_>) = (old.members().collect(), new.members().collect());
        for (old, new) in merge(&old, &new, |member| member.key.as_ref()) {
            let Some(key) = old.or(new).map(|member| member.key.as_ref()) else { continue };
            let (old, new) = (old.map(|member| member.value), new.map(|member| member.value));
            if old != new {
                self.below(&name_in_path(key, self.path.is_empty()), old, new);
            }
        }
    }

    /// By position. Where one side is longer, what both begin and end with stays out of it, so that an item put in
    /// front does not make every one after it different.
    fn enter_arrays(&mut self, old: &str, new: &str) {
        let (Ok(old), Ok(new)) = (json::array_items_checked(old), json::array_items_checked(new)) else {
            return;
        };
        let old: Vec<&str> = old.into_iter().map(|(item, _)| item).collect();
        let new: Vec<&str> = new.into_iter().map(|(item, _)| item).collect();
        let shorter = old.len().min(new.len());
        let same_front = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let same_back = match old.len() == new.len() {
            true => 0,
            false => old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count(),
        };
        let same_back = same_back.min(shorter - same_front);
        for at in same_front..old.len().max(new.len()) - same_back {
            let old = old.get(at).filter(|_| at < old.len() - same_back);
            let new = new.get(at).filter(|_| at < new.len() - same_back);
            self.below(&format!("[{at}]"), old.copied(), new.copied());
        }
    }

    fn below(&mut self, step: &str, old: Option<&str>, new: Option<&str>) {
        let length = self.path.len();
        self.path.push_str(step);
        self.compare(old, new);
        self.path.truncate(length);
    }
}

fn name_in_path(name: &str, first: bool) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '$' | '-');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        return if first { name.to_owned() } else { format!(".{name}") };
    }
    let mut shown: String = name.chars().take(LONGEST_NAME).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    format!("[{}]", json::quote(&shown))
}

/// Characters of a name in a heading, and of a description behind it.
const NAME_SHOWN: usize = 80;
const DESCRIPTION_SHOWN: usize = 120;
/// Characters of a value that is shown from its beginning.
const VALUE_SHOWN: usize = 200;
/// Characters of a long value that are shown before and after the place where it begins to differ.
const SHOWN_BEFORE: usize = 40;
const SHOWN_AFTER: usize = 120;
/// Characters of a path.
const PATH_SHOWN: usize = 400;

impl Change {
    fn push_rows(&self, rows: &mut Vec<Row>) {
        match self {
            Change::Declared { old, new } => {
                let shown = |hash: &DeclaredHash| {
                    format!("{} under {}", quoted(&hash.value, VALUE_SHOWN), quoted(&hash.key, NAME_SHOWN))
                };
                let heading = format!("declared hash {}", done(old.is_some(), new.is_some()));
                rows.push(Row { mark: Mark::Changed, text: heading });
                rows.extend(old.iter().map(|hash| Row { mark: Mark::Old, text: shown(hash) }));
                rows.extend(new.iter().map(|hash| Row { mark: Mark::New, text: shown(hash) }));
            }
            Change::Instructions(change) => change.push_rows("instructions", rows),
            Change::Added(kind, item) => {
                rows.push(Row { mark: Mark::Added, text: introduced(*kind, item) });
            }
            Change::Removed(kind, item) => {
                rows.push(Row { mark: Mark::Removed, text: introduced(*kind, item) });
            }
            Change::Changed { kind, name, members } => {
                let heading = format!("{} changed:", kind.subject(name));
                members.list.iter().for_each(|change| change.push_rows(&heading, rows));
                if members.more > 0 {
                    let text = format!("{heading} … and {} more members", members.more);
                    rows.push(Row { mark: Mark::Changed, text });
                }
            }
        }
    }

    fn to_json(&self) -> String {
        let object = |kind: &str, name: Option<&str>, change: &str, members: &[MemberChange], more: usize| {
            let name = name.map_or_else(|| "null".to_owned(), json::quote);
            let members: Vec<String> = members.iter().map(MemberChange::to_json).collect();
            let more = if more > 0 { format!(",\"more\":{more}") } else { String::new() };
            format!(
                r#"{{"kind":"{kind}","name":{name},"change":"{change}","members":[{}]{more}}}"#,
                members.join(",")
            )
        };
        let whole = |old: Option<String>, new: Option<String>| MemberChange { path: String::new(), old, new };
        match self {
            Change::Declared { old, new } => {
                let value = |hash: &DeclaredHash| {
                    format!(r#"{{"key":{},"value":{}}}"#, json::quote(&hash.key), json::quote(&hash.value))
                };
                let change = whole(old.as_ref().map(value), new.as_ref().map(value));
                object("declared hash", None, done(old.is_some(), new.is_some()), &[change], 0)
            }
            Change::Instructions(change) => {
                let done = done(change.old.is_some(), change.new.is_some());
                object("instructions", None, done, std::slice::from_ref(change), 0)
            }
            Change::Added(kind, item) => {
                let change = whole(None, Some(item.text.clone()));
                object(kind.noun(), Some(&item.name), "added", &[change], 0)
            }
            Change::Removed(kind, item) => {
                let change = whole(Some(item.text.clone()), None);
                object(kind.noun(), Some(&item.name), "removed", &[change], 0)
            }
            Change::Changed { kind, name, members } => {
                object(kind.noun(), Some(name), "changed", &members.list, members.more)
            }
        }
    }
}

fn done(old: bool, new: bool) -> &'static str {
    match (old, new) {
        (false, _) => "added",
        (_, false) => "removed",
        _ => "changed",
    }
}

/// An item that came or went, with its first words about itself.
fn introduced(kind: Kind, item: &Item) -> String {
    let heading = kind.subject(&item.name);
    let description = Object::read_checked(&item.text)
        .ok()
        .and_then(|object| object.string("description").map(|text| visible(&text, DESCRIPTION_SHOWN)));
    match description {
        Some(description) if !description.is_empty() => format!("{heading}: {description}"),
        _ => heading,
    }
}

impl MemberChange {
    fn push_rows(&self, heading: &str, rows: &mut Vec<Row>) {
        let place = match self.path.as_str() {
            "" => heading.to_owned(),
            path => format!("{heading} {}", visible(path, PATH_SHOWN)),
        };
        let (heading, old, new) = match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                let Shown { place: from, old, new } = show(old, new);
                (format!("{place}{from}"), Some(old), Some(new))
            }
            (old, new) => {
                let whole = |text: &String| visible(text, VALUE_SHOWN);
                let done = done(old.is_some(), new.is_some());
                (format!("{place} {done}"), old.as_ref().map(whole), new.as_ref().map(whole))
            }
        };
        rows.push(Row { mark: Mark::Changed, text: heading });
        rows.extend(old.map(|text| Row { mark: Mark::Old, text }));
        rows.extend(new.map(|text| Row { mark: Mark::New, text }));
    }

    fn to_json(&self) -> String {
        let side = |name: &str, value: &Option<String>| match value {
            Some(value) => format!(",\"{name}\":{value}"),
            None => String::new(),
        };
        format!(
            "{{\"path\":{}{}{}}}",
            json::quote(&self.path),
            side("old", &self.old),
            side("new", &self.new)
        )
    }
}

/// Two values as a person sees them, and where they begin to differ if that is not plain.
struct Shown {
    place: String,
    old: String,
    new: String,
}

fn show(old: &str, new: &str) -> Shown {
    match (json::decode_string(old), json::decode_string(new)) {
        (Some(old), Some(new)) => {
            let window = Window::of(&old, &new);
            let cut = |text: &str| window.cut(text, json::quote);
            Shown { place: window.place(&old, &new), old: cut(&old), new: cut(&new) }
        }
        _ => {
            let window = Window::of(old, new);
            let cut = |text: &str| window.cut(text, str::to_owned);
            // A position in the text of an object or a number would help nobody.
            Shown { place: String::new(), old: cut(old), new: cut(new) }
        }
    }
}

/// The part of two texts that is shown.
struct Window {
    /// Characters that both begin with.
    same: usize,
    /// Characters left out at the beginning.
    skipped: usize,
    /// Characters shown at most.
    length: usize,
}

impl Window {
    fn of(old: &str, new: &str) -> Self {
        let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
        let is_short = |text: &str| text.chars().nth(VALUE_SHOWN).is_none();
        if is_short(old) && is_short(new) {
            return Window { same, skipped: 0, length: VALUE_SHOWN };
        }
        let skipped = same.saturating_sub(SHOWN_BEFORE);
        Window { same, skipped, length: same - skipped + SHOWN_AFTER }
    }

    fn cut(&self, text: &str, shape: impl Fn(&str) -> String) -> String {
        let mut rest = text.chars().skip(self.skipped);
        let part: String = rest.by_ref().take(self.length).collect();
        let front = if self.skipped > 0 { "…" } else { "" };
        let back = if rest.next().is_some() { "…" } else { "" };
        format!("{front}{}{back}", visible(&shape(&part), usize::MAX))
    }

    /// Says the position in a long text, and the characters where two may look alike.
    fn place(&self, old: &str, new: &str) -> String {
        let position = match self.skipped {
            0 => String::new(),
            _ => format!(", from character {} on", self.same + 1),
        };
        match (old.chars().nth(self.same), new.chars().nth(self.same)) {
            (Some(old), Some(new)) if !(old.is_ascii() && new.is_ascii()) => {
                format!("{position} (U+{:04X} became U+{:04X})", u32::from(old), u32::from(new))
            }
            _ => position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::canon::canonical;
    use proptest::prelude::*;

    fn surface(instructions: &str, items: &[(Kind, &str)]) -> Surface {
        let items = items.iter().map(|(kind, text)| {
            let text = canonical(text).unwrap();
            let name = Object::read(&text).unwrap().string(kind.key()).unwrap().into_owned();
            (*kind, Item { name, text })
        });
        Surface::new(canonical(instructions).unwrap(), None, items.collect::<Vec<_>>())
    }

    fn tools(old: &str, new: &str) -> Difference {
        let tool = |text: &str| surface("null", &[(Kind::Tools, text)]);
        Difference::between(&tool(old), &tool(new))
    }

    fn paths(difference: &Difference) -> Vec<&str> {
        fn members(change: &Change) -> &[MemberChange] {
            match change {
                Change::Changed { members, .. } => &members.list,
                other => panic!("{other:?}"),
            }
        }
        difference.changes.iter().flat_map(members).map(|member| member.path.as_str()).collect()
    }

    fn lines(difference: &Difference) -> Vec<String> {
        difference.rows().into_iter().map(|row| format!("{:?} {}", row.mark, row.text)).collect()
    }

    #[test]
    fn each_changed_member_is_named_by_its_path() {
        let old = r#"{"name":"t","annotations":{"readOnlyHint":true},"inputSchema":{"properties":{"a":{"maximum":5,"enum":["x","y","z"]}}},"odd name":1,"gone":null}"#;
        for (what, with, path) in [
            ("true", "false", "annotations.readOnlyHint"),
            ("\"maximum\":5", "\"maximum\":6", "inputSchema.properties.a.maximum"),
            ("\"z\"", "\"w\"", "inputSchema.properties.a.enum[2]"),
            ("\"x\",\"y\"", "\"y\",\"x\"", "inputSchema.properties.a.enum[0]"),
            ("\"x\",", "\"w\",\"x\",", "inputSchema.properties.a.enum[0]"),
            (",\"z\"", "", "inputSchema.properties.a.enum[2]"),
            ("\"odd name\":1", "\"odd name\":\"1\"", "[\"odd name\"]"),
            (",\"gone\":null", "", "gone"),
            ("{\"readOnlyHint\":true}", "[true]", "annotations"),
        ] {
            let new = old.replace(what, with);
            assert_ne!(new, old);
            let difference = tools(old, &new);
            assert_eq!(paths(&difference).first(), Some(&path), "{what} {with}");
            assert_eq!(difference.hints_only(), path.starts_with("annotations"), "{path}");
            assert!(!tools(&new, old).is_empty());
        }
        assert!(tools(old, old).is_empty());
    }

    #[test]
    fn items_come_and_go_in_a_fixed_order() {
        let old = surface(
            "\"a\"",
            &[
                (Kind::Skills, r#"{"uri":"skill://s"}"#),
                (Kind::Tools, r#"{"name":"b","description":"x\ny"}"#),
            ],
        );
        let mut new =
            surface("null", &[(Kind::Prompts, r#"{"name":"p"}"#), (Kind::Tools, r#"{"name":"c"}"#)]);
        new.declared = Some(DeclaredHash { key: "surfaceHash".into(), value: "v1".into() });
        assert_eq!(
            lines(&Difference::between(&old, &new)),
            [
                "Changed declared hash added",
                "New \"v1\" under \"surfaceHash\"",
                "Changed instructions removed",
                "Old \"a\"",
                "Removed tool \"b\": x\\u{a}y",
                "Added tool \"c\"",
                "Added prompt \"p\"",
                "Removed skill \"skill://s\"",
            ]
        );
    }

    #[test]
    fn both_values_are_shown_around_the_place_where_they_differ() {
        let maximum = r#"{"name":"t","x":{"maximum":5}}"#;
        assert_eq!(
            lines(&tools(maximum, &maximum.replace('5', "6"))),
            ["Changed tool \"t\" changed: x.maximum", "Old 5", "New 6"]
        );
        let text = |end: &str| {
            format!(r#"{{"name":"t","description":"{}{end}{}"}}"#, "a".repeat(9000), "z".repeat(500))
        };
        let shown = lines(&tools(&text("old"), &text("new")));
        assert_eq!(shown[0], "Changed tool \"t\" changed: description, from character 9001 on");
        assert_eq!(shown[1], format!("Old …\"{}old{}\"…", "a".repeat(40), "z".repeat(117)));
        assert_eq!(shown[2], format!("New …\"{}new{}\"…", "a".repeat(40), "z".repeat(117)));
    }

    #[test]
    fn texts_that_look_alike_are_told_apart() {
        let plain = r#"{"name":"t","x":"paypal"}"#;
        let hidden = plain.replace("pal", "\u{200b}pal");
        assert_eq!(
            lines(&tools(plain, &hidden)),
            [
                "Changed tool \"t\" changed: x (U+0070 became U+200B)",
                "Old \"paypal\"",
                "New \"pay\\u{200b}pal\"",
            ]
        );
        let alike = lines(&tools(plain, &plain.replacen("a", "\u{430}", 2).replace("n\u{430}me", "name")));
        assert_eq!(alike[0], "Changed tool \"t\" changed: x (U+0061 became U+0430)");
    }

    #[test]
    fn hints_alone_are_said_to_be_hints() {
        let old = r#"{"name":"t","annotations":{"readOnlyHint":true,"title":"x"}}"#;
        let note = "Note only hints (annotations) moved; servers are known to flip these";
        let without = tools(old, r#"{"name":"t"}"#);
        assert_eq!(lines(&without).last().unwrap(), note);
        let both = tools(old, r#"{"name":"t","title":"y"}"#);
        assert!(!both.hints_only() && !lines(&both).contains(&note.to_owned()));
        assert!(!Difference::default().hints_only());
        let template = |hint| {
            let text = format!(r#"{{"uriTemplate":"x","annotations":{{"priority":{hint}}}}}"#);
            surface("null", &[(Kind::ResourceTemplates, &text)])
        };
        assert!(!Difference::between(&template(0), &template(1)).hints_only(), "no hint about a tool");
    }

    #[test]
    fn programs_get_the_values_whole_and_in_plain_sight() {
        let difference = tools(
            r#"{"name":"t","a":"x","b":null}"#,
            &format!("{{\"name\":\"t\",\"a\":\"{}\u{202e}\",\"c\":1}}", "y".repeat(3000)),
        );
        let text = difference.to_json();
        assert!(text.contains("\\u202e") && !text.contains('\u{202e}'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value,
            serde_json::json!([{"kind": "tool", "name": "t", "change": "changed", "members": [
                {"path": "a", "old": "x", "new": format!("{}\u{202e}", "y".repeat(3000))},
                {"path": "b", "old": null},
                {"path": "c", "new": 1},
            ]}])
        );
        let all = Difference::between(
            &surface("\"i\"", &[(Kind::Prompts, r#"{"name":"p"}"#)]),
            &surface("\"j\"", &[(Kind::Skills, r#"{"uri":"s"}"#)]),
        );
        let value: serde_json::Value = serde_json::from_str(&all.to_json()).unwrap();
        assert_eq!(
            value,
            serde_json::json!([
                {"kind": "instructions", "name": null, "change": "changed", "members": [{"path": "", "old": "i", "new": "j"}]},
                {"kind": "prompt", "name": "p", "change": "removed", "members": [{"path": "", "old": {"name": "p"}}]},
                {"kind": "skill", "name": "s", "change": "added", "members": [{"path": "", "new": {"uri": "s"}}]},
            ])
        );
    }

    #[test]
    fn what_is_kept_of_a_large_difference_is_bounded() {
        let wide = |value: u32| {
            let members: String = (0..1000).map(|n| format!(",\"m{n:04}\":{value}")).collect();
            format!("{{\"name\":\"t\"{members}}}")
        };
        let difference = tools(&wide(0), &wide(1));
        let Change::Changed { members, .. } = &difference.changes[0] else { panic!() };
        assert_eq!((members.list.len(), members.more), (MOST_OF_ITEM, 800));
        assert_eq!(lines(&difference).last().unwrap(), "Changed tool \"t\" changed: … and 800 more members");

        let key = "k".repeat(300);
        let deep = |value: u32| {
            format!(
                "{{\"name\":\"t\",\"x\":{}{value}{}}}",
                format!("{{\"{key}\":").repeat(300),
                "}".repeat(300)
            )
        };
        let difference = tools(&deep(0), &deep(1));
        assert!(paths(&difference)[0].len() < LONGEST_PATH + LONGEST_NAME + 10);

        let many = |value: u32| {
            let texts: Vec<String> = (0..10_000)
                .map(|n| format!(r#"{{"name":"t{n}","a":{value},"b":{value},"c":{value}}}"#))
                .collect();
            let items: Vec<_> = texts.iter().map(|text| (Kind::Tools, text.as_str())).collect();
            surface("null", &items)
        };
        let difference = Difference::between(&many(0), &many(1));
        assert_eq!(difference.changes.len(), 10_000);
        let listed = paths(&difference).len();
        assert!((MOST_OF_ALL..=MOST_OF_ALL + 10_000).contains(&listed), "{listed}");
    }

    proptest! {
        #[test]
        fn it_is_empty_exactly_for_equal_surfaces(
            old in prop::collection::btree_map("[a-d]", ("[a-c]", 0..3_u8), 0..4),
            new in prop::collection::btree_map("[a-d]", ("[a-c]", 0..3_u8), 0..4),
        ) {
            let make = |tools: &std::collections::BTreeMap<String, (String, u8)>| {
                let texts: Vec<String> = tools
                    .iter()
                    .map(|(name, (key, value))| format!(r#"{{"name":"{name}","x":{{"{key}":[0,{value}]}}}}"#))
                    .collect();
                let items: Vec<_> = texts.iter().map(|text| (Kind::Tools, text.as_str())).collect();
                surface("null", &items)
            };
            let (one, other) = (make(&old), make(&new));
            let difference = Difference::between(&one, &other);
            prop_assert_eq!(difference.is_empty(), old == new);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&difference.to_json()).is_ok());
            let _ = difference.rows();
        }

        #[test]
        fn no_two_texts_make_it_panic(old in any::<String>(), new in any::<String>()) {
            let shown = show(&json::quote(&old), &json::quote(&new));
            prop_assert!(old == new || shown.old != shown.new || old.chars().count() > VALUE_SHOWN);
            let raw = |text: &str| Surface::new("null".into(), None, [(Kind::Tools, Item { name: "t".into(), text: text.into() })]);
            let difference = Difference::between(&raw(&old), &raw(&new));
            prop_assert_eq!(difference.is_empty(), old == new);
            let _ = difference.rows();
        }
    }
}
