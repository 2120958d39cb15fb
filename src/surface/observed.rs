//! A surface as it was read: the texts as they came, and where each item stands in them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;

use super::declared::DeclaredHash;
use crate::wire::meta::Edit;
use crate::wire::request::SKILLS;
use crate::wire::{Era, Object, Payload, Splice, json};

/// The lists that are read whole at start and served from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `skills/list` (SEP-2640)
    Skills,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Tools, Kind::Prompts, Kind::ResourceTemplates, Kind::Skills];

    /// The method that lists it.
    pub fn method(self) -> &'static str {
        match self {
            Kind::Tools => "tools/list",
            Kind::Prompts => "prompts/list",
            Kind::ResourceTemplates => "resources/templates/list",
            Kind::Skills => "skills/list",
        }
    }

    /// The list that a method asks for.
    pub fn of_method(method: &str) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The member of the result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Kind::Tools => "tools",
            Kind::Prompts => "prompts",
            Kind::ResourceTemplates => "resourceTemplates",
            Kind::Skills => "skills",
        }
    }

    /// What one of its items is called.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Tools => "tool",
            Kind::Prompts => "prompt",
            Kind::ResourceTemplates => "resource template",
            Kind::Skills => "skill",
        }
    }

    /// The member of an item that names it.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Tools | Kind::Prompts => "name",
            Kind::ResourceTemplates => "uriTemplate",
            Kind::Skills => "uri",
        }
    }

    /// The capability without which the endpoint does not offer it, and where skills are concerned the extension.
    pub fn capability(self) -> (&'static str, Option<&'static str>) {
        match self {
            Kind::Tools => ("tools", None),
            Kind::Prompts => ("prompts", None),
            Kind::ResourceTemplates => ("resources", None),
            Kind::Skills => ("extensions", Some(SKILLS)),
        }
    }
}

/// Everything that was read.
#[derive(Debug)]
pub struct Observed {
    /// The era it was read in.
    pub era: Era,
    /// The result of `server/discover` or `initialize`.
    pub opening: Bytes,
    lists: HashMap<Kind, List>,
}

impl Observed {
    /// Puts a surface together.
    pub fn new(era: Era, opening: Bytes, lists: impl IntoIterator<Item = List>) -> Self {
        Observed { era, opening, lists: lists.into_iter().map(|list| (list.kind, list)).collect() }
    }

    /// The raw text of the instructions, where there are some.
    pub fn instructions(&self) -> Option<&str> {
        member(&self.opening, "instructions").filter(|text| *text != "null")
    }

    /// The hash that the endpoint declares of itself, on every page of its tools.
    ///
    /// # Errors
    /// It declares one there, but not always the same; in words for a person.
    pub fn declared(&self) -> Result<Option<DeclaredHash>, String> {
        let Some(tools) = self.list(Kind::Tools) else { return Ok(None) };
        let mut pages = tools.pages.iter().map(|page| read_declared(&page.text));
        let first = pages.next().transpose()?.flatten();
        if pages.try_fold(true, |same, page| Ok::<_, String>(same && page? == first))? {
            Ok(first)
        } else {
            Err("the pages of tools/list declare different hashes".into())
        }
    }

    /// A list, if the endpoint offers it.
    pub fn list(&self, kind: Kind) -> Option<&List> {
        self.lists.get(&kind)
    }
}

/// The raw text of a member of a result that was read before.
fn member<'a>(result: &'a Bytes, key: &str) -> Option<&'a str> {
    Object::read_checked(std::str::from_utf8(result).ok()?).ok()?.get(key)
}

fn read_declared(result: &Bytes) -> Result<Option<DeclaredHash>, String> {
    match member(result, "_meta").map(Object::read_checked) {
        Some(Ok(meta)) => DeclaredHash::read(&meta),
        _ => Ok(None),
    }
}

/// One list with all its pages.
#[derive(Debug)]
pub struct List {
    kind: Kind,
    pages: Vec<Page>,
    names: HashMap<String, Place>,
    hidden: HashSet<Place>,
}

#[derive(Debug)]
struct Page {
    text: Bytes,
    items: Vec<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    page: usize,
    item: usize,
}

/// Why a page cannot be taken.
pub type BadPage = String;

impl List {
    /// A list without pages.
    pub fn new(kind: Kind) -> Self {
        List { kind, pages: Vec::new(), names: HashMap::new(), hidden: HashSet::new() }
    }

    /// Takes the text of a list result.
    ///
    /// # Errors
    /// It is not such a list, an item has no name, or a name stands twice: what is listed would not be what is called.
    pub fn add_page(&mut self, result: Bytes) -> Result<(), BadPage> {
        let page = self.pages.len();
        let method = self.kind.method();
        let mut items = Vec::new();
        {
            let text = std::str::from_utf8(&result).map_err(|_| format!("{method}: not UTF-8"))?;
            let object = Object::read(text)
                .map_err(|wrong| format!("{method}: the result is unreadable ({wrong:?})"))?;
            let member = object
                .member(self.kind.member())
                .ok_or_else(|| format!("{method}: the result has no {:?}", self.kind.member()))?;
            let found = json::array_items(member.value)
                .map_err(|_| format!("{method}: {:?} is no array", self.kind.member()))?;
            for (item, (item_text, span)) in found.into_iter().enumerate() {
                let name = Object::read(item_text)
                    .ok()
                    .and_then(|object| object.string(self.kind.key()).map(std::borrow::Cow::into_owned))
                    .ok_or_else(|| {
                        format!("{method}: an item is unreadable or has no {:?}", self.kind.key())
                    })?;
                if self.names.insert(name.clone(), Place { page, item }).is_some() {
                    return Err(format!("{method}: {} is listed twice", json::quote(&name)));
                }
                items.push(member.value_span.start + span.start..member.value_span.start + span.end);
            }
        }
        self.pages.push(Page { text: result, items });
        Ok(())
    }

    /// What it lists.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether an item of that name may be used.
    pub fn contains(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|place| !self.hidden.contains(place))
    }

    /// How many items there are, hidden ones included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The items with their names, in the order they were listed.
    pub fn items(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut all: Vec<_> = self.names.iter().collect();
        all.sort_by_key(|(_, place)| (place.page, place.item));
        all.into_iter().map(|(name, place)| (name.as_str(), self.text(*place)))
    }

    /// Leaves an item out of what is served. It stays part of the surface.
    pub fn hide(&mut self, name: &str) {
        if let Some(place) = self.names.get(name) {
            self.hidden.insert(*place);
        }
    }

    fn text(&self, place: Place) -> &str {
        let found =
            self.pages.get(place.page).and_then(|page| page.text.get(page.items.get(place.item)?.clone()));
        found.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    /// The whole list as one result, the items as the endpoint sent them. `shown` may replace an item's text.
    pub fn to_result(&self, shown: impl Fn(&str) -> Option<Payload>) -> Payload {
        let Some(first) = self.pages.first() else {
            return format!("{{\"{}\":[]}}", self.kind.member()).into();
        };
        let single = self.pages.len() == 1 && self.hidden.is_empty();
        let mut items = Payload::new();
        let mut splice = Splice::new();
        let mut count = 0;
        for (page_at, page) in self.pages.iter().enumerate() {
            for (item, span) in page.items.iter().enumerate() {
                let place = Place { page: page_at, item };
                let changed = shown(self.text(place));
                if single {
                    if let Some(changed) = changed {
                        splice.replace(span.clone(), changed);
                    }
                    continue;
                }
                if self.hidden.contains(&place) {
                    continue;
                }
                if count > 0 {
                    items.push(Bytes::from_static(b","));
                }
                items.append(changed.unwrap_or_else(|| page.text.slice(span.clone()).into()));
                count += 1;
            }
        }
        if single {
            return splice.apply(&first.text);
        }
        let text = std::str::from_utf8(&first.text).unwrap_or("{}");
        let object = Object::read(text).unwrap_or_default();
        let mut array = Payload::from(Bytes::from_static(b"["));
        array.append(items);
        array.push(Bytes::from_static(b"]"));
        let mut edit = Edit::new(&object);
        edit.remove("nextCursor").set(self.kind.member(), array);
        edit.apply(&first.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(pages: &[&'static str]) -> Result<List, BadPage> {
        let mut list = List::new(Kind::Tools);
        pages.iter().try_for_each(|page| list.add_page(Bytes::from_static(page.as_bytes())))?;
        Ok(list)
    }

    fn text(list: &List) -> String {
        String::from_utf8(list.to_result(|_| None).into_vec()).unwrap()
    }

    #[test]
    fn one_page_is_served_as_it_came() {
        let page = r#"{"x":1, "tools":[ {"name":"a","n":1.0} , {"name":"b"}], "_meta":{}}"#;
        assert_eq!(text(&list(&[page]).unwrap()), page);
    }

    #[test]
    fn pages_become_one_list_and_hidden_items_are_left_out() {
        let mut list = list(&[
            r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"","y":1}"#,
            r#"{"tools":[],"nextCursor":"2"}"#,
            r#"{"tools":[ {"name":"c", "n":1e3} ]}"#,
        ])
        .unwrap();
        assert_eq!(text(&list), r#"{"tools":[{"name":"a"},{"name":"b"},{"name":"c", "n":1e3}],"y":1}"#);
        list.hide("b");
        assert_eq!(text(&list), r#"{"tools":[{"name":"a"},{"name":"c", "n":1e3}],"y":1}"#);
        assert!(list.contains("a") && !list.contains("b") && !list.contains("z"));
        assert_eq!(list.items().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn lists_that_cannot_be_trusted_are_refused() {
        for (pages, why) in [
            (vec!["{}"], "has no \"tools\""),
            (vec![r#"{"tools":{}}"#], "no array"),
            (vec![r#"{"tools":[7]}"#], "no \"name\""),
            (vec![r#"{"tools":[{"title":"x"}]}"#], "no \"name\""),
            (vec![r#"{"tools":[{"name":"a","name":"b"}]}"#], "unreadable"),
            (vec![r#"{"tools":[{"name":"a"}]}"#, r#"{"tools":[{"name":"\u0061"}]}"#], "listed twice"),
        ] {
            let found = list(&pages).unwrap_err();
            assert!(found.contains(why), "{pages:?}: {found}");
        }
    }
}
