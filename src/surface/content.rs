//! The surface in canonical form, item by item, and its hash. `docs/surface-hash.md` specifies both.

use super::canon::{self, canonical_of_checked};
use super::declared::DeclaredHash;
use super::hash::{Digest, ExpectedHash, SurfaceHash};
use super::observed::{Kind, Observed};
use crate::report::{quoted, visible};

/// A tool, prompt, resource template or skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name, URI template or URI.
    pub name: String,
    /// The whole item in canonical form.
    pub text: String,
}

impl Item {
    /// The digest of its canonical form.
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }
}

/// Everything of an endpoint that can steer a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surface {
    /// The instructions in canonical form; `null` where there are none.
    pub instructions: String,
    /// The hash that the endpoint declares of itself. Not part of what is hashed here.
    pub declared: Option<DeclaredHash>,
    lists: [Vec<Item>; 4],
    hash: SurfaceHash,
}

/// The lists in the order of the members of the document that is hashed.
const ORDER: [Kind; 4] = [Kind::Prompts, Kind::ResourceTemplates, Kind::Skills, Kind::Tools];

impl Surface {
    /// Puts a surface together from parts in canonical form, in any order.
    pub fn new(
        instructions: String,
        declared: Option<DeclaredHash>,
        items: impl IntoIterator<Item = (Kind, Item)>,
    ) -> Self {
        let mut lists: [Vec<Item>; 4] = Default::default();
        for (kind, item) in items {
            if let Some(list) = ORDER.iter().position(|known| *known == kind).and_then(|at| lists.get_mut(at))
            {
                list.push(item);
            }
        }
        for list in &mut lists {
            list.sort_by(|one, other| canon::utf16(&one.name, &other.name));
        }
        let hash = SurfaceHash(Digest::of_pieces(pieces(&instructions, &lists)));
        Surface { instructions, declared, lists, hash }
    }

    /// The canonical form of what was read.
    ///
    /// # Errors
    /// A part of it has none, or its declared hash is unclear; in words for a person.
    pub fn of(observed: &Observed) -> Result<Self, String> {
        let declared = observed.declared()?;
        let instructions = canonical_of_checked(observed.instructions().unwrap_or("null"))
            .map_err(|why| format!("its instructions cannot be hashed: {why}"))?;
        let mut items = Vec::new();
        for list in Kind::ALL.into_iter().filter_map(|kind| observed.list(kind)) {
            for (name, text) in list.items() {
                let text = canonical_of_checked(text).map_err(|why| {
                    let name = quoted(name, 80);
                    format!(
                        "{}: {name} cannot be hashed: {}",
                        list.kind().method(),
                        visible(&why.to_string(), 120)
                    )
                })?;
                items.push((list.kind(), Item { name: name.to_owned(), text }));
            }
        }
        Ok(Surface::new(instructions, declared, items))
    }

    /// The items of a list, sorted by name.
    pub fn list(&self, kind: Kind) -> &[Item] {
        ORDER
            .iter()
            .position(|known| *known == kind)
            .and_then(|at| self.lists.get(at))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The hash that is computed here.
    pub fn hash(&self) -> SurfaceHash {
        self.hash
    }

    /// Whether it is the surface with that hash.
    pub fn has(&self, expected: &ExpectedHash) -> bool {
        match expected {
            ExpectedHash::Computed(hash) => *hash == self.hash,
            ExpectedHash::Declared(value) => self.declared.as_ref().is_some_and(|hash| hash.value == *value),
        }
    }

    /// The document that is hashed, in canonical form.
    pub fn document(&self) -> String {
        pieces(&self.instructions, &self.lists).collect()
    }
}

/// `{"instructions":…,"prompts":[…],"resourceTemplates":[…],"skills":[…],"tools":[…]}`, piece by piece.
fn pieces<'a>(instructions: &'a str, lists: &'a [Vec<Item>; 4]) -> impl Iterator<Item = &'a str> {
    let lists = ORDER.iter().zip(lists).flat_map(|(kind, list)| {
        let items = list
            .iter()
            .enumerate()
            .flat_map(|(at, item)| [if at == 0 { "" } else { "," }, item.text.as_str()]);
        [",\"", kind.member(), "\":["].into_iter().chain(items).chain(["]"])
    });
    ["{\"instructions\":", instructions].into_iter().chain(lists).chain(["}"])
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::surface::List;
    use crate::wire::Era;

    fn surface(opening: &str, tools: &[&str]) -> Result<Surface, String> {
        let mut list = List::new(Kind::Tools);
        for page in tools {
            list.add_page(Bytes::from(format!("{{\"tools\":{page}}}"))).unwrap();
        }
        Surface::of(&Observed::new(Era::Modern, Bytes::from(opening.to_owned()), [list]))
    }

    #[test]
    fn the_document_has_every_list_sorted_and_every_item_whole() {
        let surface = surface(
            r#"{"instructions":"h\u0069","x":1}"#,
            &[r#"[{"name":"b","x":1.0}, {"z":null, "name":"\u00e9"}]"#, r#"[{"name":"a"}]"#],
        )
        .unwrap();
        let document = "{\"instructions\":\"hi\",\"prompts\":[],\"resourceTemplates\":[],\"skills\":[],\"tools\":[{\"name\":\"a\"},{\"name\":\"b\",\"x\":1},{\"name\":\"\u{e9}\",\"z\":null}]}";
        assert_eq!(surface.document(), document);
        assert_eq!(surface.hash(), SurfaceHash(Digest::of(document.as_bytes())));
        assert_eq!(canon::canonical(document).unwrap(), document, "it is canonical itself");
    }

    #[test]
    fn an_item_without_a_canonical_form_is_named() {
        let why = surface("{}", &[r#"[{"name":"a","inputSchema":{"x":1,"\u0078":2}}]"#]).unwrap_err();
        assert_eq!(why, r#"tools/list: "a" cannot be hashed: the member "x" stands twice"#);
    }
}
