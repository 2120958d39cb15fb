//! A surface as it was read: the texts as they came, and where each item stands in them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;

use super::declared::DeclaredHash;
use super::skill::Skills;
use crate::report::quoted;
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

    /// One of its items as a person is told of it: `tool "echo"`.
    pub fn subject(self, name: &str) -> String {
        format!("{} {}", self.noun(), quoted(name, 80))
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
    /// What the endpoint says it can do.
    pub offers: Offers,
    lists: HashMap<Kind, List>,
    skills: Option<Skills>,
}

impl Observed {
    /// Puts a surface together. Skills that cannot be used are left out of what is served.
    pub fn new(era: Era, opening: Bytes, lists: impl IntoIterator<Item = List>) -> Self {
        let mut lists: HashMap<_, _> = lists.into_iter().map(|list| (list.kind, list)).collect();
        let skills = lists.get_mut(&Kind::Skills).map(|list| {
            let skills = Skills::read(list.items());
            skills.refused().for_each(|(uri, _)| list.hide(uri));
            skills
        });
        Observed { era, offers: Offers::of(&opening), opening, lists, skills }
    }

    /// What the listed skills amount to, if the endpoint offers skills.
    pub fn skills(&self) -> Option<&Skills> {
        self.skills.as_ref()
    }

    /// The raw text of the instructions, where there are some.
    pub fn instructions(&self) -> Option<&str> {
        member(&self.opening, "instructions").filter(|text| *text != "null")
    }

    /// The hash that the endpoint declares of itself, on every page of its tools.
    ///
    /// # Errors
    /// It declares one there, but not always the same, or another one elsewhere; in words for a person.
    pub fn declared(&self) -> Result<Option<DeclaredHash>, String> {
        let Some(tools) = self.list(Kind::Tools) else { return Ok(None) };
        let mut pages = tools.pages.iter();
        let declared = pages.next().map(|page| DeclaredHash::read(&meta(&page.text))).transpose()?.flatten();
        for page in pages {
            if DeclaredHash::read(&meta(&page.text))? != declared {
                return Err("the pages of tools/list declare different hashes".into());
            }
        }
        let Some(hash) = &declared else { return Ok(None) };
        let others = Kind::ALL.into_iter().filter_map(|kind| self.list(kind)).flat_map(|list| &list.pages);
        for result in others.map(|page| &page.text).chain([&self.opening]) {
            if hash.check_if_there(&meta(result)).is_err() {
                return Err("the results read at start declare different hashes".into());
            }
        }
        Ok(declared)
    }

    /// Leaves the items of a list out of what is served for which `hidden` says so. They stay part of the surface.
    pub fn hide(&mut self, kind: Kind, mut hidden: impl FnMut(&str, &str) -> bool) {
        let Some(list) = self.lists.get_mut(&kind) else { return };
        let names: Vec<_> =
            list.items().filter(|(name, item)| hidden(name, item)).map(|(name, _)| name.to_owned()).collect();
        names.iter().for_each(|name| list.hide(name));
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

/// The `_meta` of a result that was read before.
fn meta(result: &Bytes) -> Object<'_> {
    member(result, "_meta").and_then(|meta| Object::read_checked(meta).ok()).unwrap_or_default()
}

/// What an endpoint says it can do, as far as it is asked for (`ServerCapabilities`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// `logging`
    pub logging: bool,
    /// `resources.subscribe`
    pub subscriptions: bool,
    /// `tools.listChanged`
    pub tools_changed: bool,
    /// `prompts.listChanged`
    pub prompts_changed: bool,
    /// `resources.listChanged`
    pub resources_changed: bool,
}

impl Offers {
    fn of(opening: &Bytes) -> Self {
        let all = member(opening, "capabilities").and_then(|all| Object::read_checked(all).ok());
        let all = all.unwrap_or_default();
        let is_true = |group: &str, member: &str| {
            all.object(group).ok().flatten().is_some_and(|group| group.get(member) == Some("true"))
        };
        Offers {
            logging: all.get("logging").is_some(),
            subscriptions: is_true("resources", "subscribe"),
            tools_changed: is_true("tools", "listChanged"),
            prompts_changed: is_true("prompts", "listChanged"),
            resources_changed: is_true("resources", "listChanged"),
        }
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

    /// The text of an item that may be used.
    pub fn item(&self, name: &str) -> Option<&str> {
        self.names.get(name).filter(|place| !self.hidden.contains(place)).map(|place| self.text(*place))
    }

    /// Leaves an item out of what is served. It stays part of the surface.
    fn hide(&mut self, name: &str) {
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

    #[test]
    fn a_refused_skill_is_not_served_and_stays_part_of_the_surface() {
        let mut skills = List::new(Kind::Skills);
        let good = r#"{"uri":"skill://a/b/SKILL.md","frontmatter":{"name":"b","description":""},"resources":[{"uri":"skill://a/b/SKILL.md","digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0}]}"#;
        let bad = r#"{"uri":"skill://a/c/SKILL.md","resources":"dynamic"}"#;
        skills.add_page(format!("{{\"skills\":[{bad},{good}]}}").into()).unwrap();
        let observed = Observed::new(Era::Modern, Bytes::from_static(b"{}"), [skills]);
        let list = observed.list(Kind::Skills).unwrap();
        assert_eq!(text(list), format!("{{\"skills\":[{good}]}}"));
        assert_eq!(list.item("skill://a/b/SKILL.md"), Some(good));
        assert_eq!(list.item("skill://a/c/SKILL.md"), None);
        assert_eq!(crate::surface::Surface::of(&observed).unwrap().list(Kind::Skills).len(), 2);
        assert!(Observed::new(Era::Modern, Bytes::new(), []).skills().is_none());
    }
}
